import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { PODS } from '../../api/resources.ts';
import { kubeconfigText } from '../../apiserver/pki/kubeconfig.ts';
import { copiedPki } from '../../apiserver/pki/pki-fixture.ts';
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

/** Writes the kubeconfig of an engine with this port. Nothing listens on ports as low as those in the tests. */
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

test('a command says that a hung engine does not answer, and fails with what to do; close() ends a call', async () => {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const sockets: Socket[] = [];
  server.on('connection', (socket) => sockets.push(socket.on('error', () => undefined)));
  onTestFinished(() => sockets.forEach((socket) => void socket.destroy()));
  const { port } = server.address() as AddressInfo;
  publish(port);
  recordStarted(folder);
  const soon = await engineClient(folder, { say, silenceMillis: 20 });
  await expect(soon.resource(PODS).list()).rejects.toThrow(
    `lifepod is running (PID ${process.pid}), but its API does not answer at https://127.0.0.1:${port}: see its output`,
  );
  const hung = await engineClient(folder, { say });
  const connected = once(server, 'connection');
  const call = hung.resource(PODS).list();
  const ended = expect(call).rejects.toThrow('aborted');
  await connected;
  hung.close();
  await ended;
  lock.release();
});

test('a command whose kubeconfig the engine does not accept says that a restart writes the file again', async () => {
  const { caCertificate, serving, admin: credentials } = await copiedPki(folder);
  const body = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'Unauthorized', code: 401 };
  const server = createHttpsServer({ cert: serving.certificate, key: serving.key }, (_request, response) =>
    response.writeHead(401, { 'content-type': 'application/json' }).end(JSON.stringify(body)),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const address = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  writeFileAtomic(kubeconfigPath(folder), kubeconfigText({ server: address, caCertificate, user: 'u', credentials }));
  recordStarted(folder);
  const client = await engineClient(folder, { say });
  await expect(client.resource(PODS).list()).rejects.toThrow(
    `the running engine (PID ${process.pid}) does not accept the credentials in ${kubeconfigPath(folder)}: type `,
  );
  client.close();
  lock.release();
});
