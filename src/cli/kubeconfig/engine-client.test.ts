import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { PODS } from '../../api/resources.ts';
import { kubeconfigText } from '../../apiserver/pki/kubeconfig.ts';
import { lockForStart, recordStarted } from '../../engine/data-folder/lock-line.ts';
import { kubeconfigPath } from '../../engine/settings.ts';
import { type DataDirLock, writeFileAtomic } from '../../platform/files.ts';
import { engineClient, engineStarted } from './engine-client.ts';

let folder: string;
let lock: DataDirLock;
let said: string[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-client-'));
  lock = lockForStart(folder, 'engine');
  said = [];
});
afterEach(() => rmSync(folder, { recursive: true }));

const say = (line: string): void => void said.push(line);

/** Nothing listens on ports as low as these. */
function publish(port: number): void {
  const credentials = { certificate: '', key: '' };
  const server = `https://127.0.0.1:${port}`;
  writeFileAtomic(kubeconfigPath(folder), kubeconfigText({ server, caCertificate: '', user: 'u', credentials }));
}

test('a command that meets a starting engine waits until the kubeconfig names its port', async () => {
  publish(1);
  const connected = engineClient(folder, { say });
  expect(said).toEqual(['waiting until the engine has started']);
  publish(2);
  recordStarted(folder);
  await expect((await connected).resource(PODS).list()).rejects.toThrow('at https://127.0.0.1:2');
  await engineStarted(folder, say);
  expect(said).toHaveLength(1);
  lock.release();
});

test('a command that waits for a starting engine fails when the engine ends, has no kubeconfig, or an interrupt ends the wait', async () => {
  const abort = new AbortController();
  const interrupted = engineClient(folder, { say, signal: abort.signal });
  abort.abort(new Error('interrupted'));
  await expect(interrupted).rejects.toThrow('interrupted');

  const started = engineClient(folder, { say });
  recordStarted(folder);
  await expect(started).rejects.toThrow(
    `${kubeconfigPath(folder)} is missing, so the running engine (PID ${process.pid})`,
  );
  lock.release();

  lock = lockForStart(folder, 'engine');
  const ended = engineClient(folder, { say });
  lock.release();
  await expect(ended).rejects.toThrow(`the engine of ${folder} has stopped`);
});
