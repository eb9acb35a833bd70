import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { nodePlatform } from '../platform/node-js.ts';
import { rootCommand } from '../platform/programs/typed-program.ts';
import { silentLog } from '../platform/silent-log.ts';
import { checkAddresses, mayBeEngine, networkWarnings } from './engine-network.ts';
import { recordOf, resolveSettings, writeEngineRecord } from './settings.ts';

test('an interrupted start does not log that the packet filter cannot be examined', async () => {
  const warn = vi.fn();
  const platform = { ...nodePlatform('error'), log: { ...silentLog, warn } };
  const settings = resolveSettings({ dataDir: '/nonexistent', nodeName: 'node' }, undefined);
  expect(await networkWarnings(settings, platform, AbortSignal.abort())).toEqual([]);
  expect(warn).not.toHaveBeenCalled();
});

test.each([false, true])(
  'a program on the port is asked for its version only if other engines run: %s',
  async (isEngine) => {
    let connections = 0;
    const server = createServer((socket) => {
      connections++;
      socket.on('error', () => undefined).end();
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const settings = resolveSettings({ dataDir: '/nonexistent', nodeName: 'node', port }, undefined);
    const { signal } = new AbortController();
    await expect(checkAddresses(settings, undefined, signal, () => isEngine)).rejects.toThrow(
      `port ${port} on 127.0.0.1 is in use by another program`,
    );
    expect(connections).toBe(isEngine ? 1 : 0);
  },
);

test('a session whose port another program uses is advised to start the engine first, because lifepod run has no --port', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const settings = resolveSettings({ dataDir: '/nonexistent', nodeName: 'node', port }, undefined);
  const { signal } = new AbortController();
  await expect(checkAddresses({ ...settings, forSessions: true }, undefined, signal, () => false)).rejects.toThrow(
    `port ${port} on 127.0.0.1 is in use by another program: first start this engine on a free port with '${rootCommand('up --detach --port 0', '/nonexistent')}'`,
  );
});

const PID = 1;
const PORT = 7443;

function dataFolder(): string {
  const dataDir = realpathSync(mkdtempSync(join(tmpdir(), 'lifepod-network-')));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  writeEngineRecord(dataDir, recordOf(resolveSettings({ dataDir, nodeName: 'node' }, undefined), PORT));
  return dataDir;
}

const mayHave = (port: number, dataDir: string | undefined, isHere = true): boolean =>
  mayBeEngine(port, [{ pid: PID, dataDir }], () => isHere);

test('an engine may have its recorded port, and any port if the recorded one is not known', () => {
  const dataDir = dataFolder();
  expect([mayHave(PORT, dataDir), mayHave(PORT + 1, dataDir)]).toEqual([true, false]);
  // The engine is in a container, so another folder has this path there.
  expect(mayHave(PORT + 1, dataDir, false)).toBe(true);
  expect([mayHave(PORT, undefined), mayHave(PORT, join(dataDir, 'missing'))]).toEqual([true, true]);
  expect(mayBeEngine(PORT, [{ pid: process.pid, dataDir }])).toBe(false);
  expect(mayBeEngine(PORT, [])).toBe(false);
});

test('a record that is a pipe is not read, which would block', () => {
  const dataDir = dataFolder();
  rmSync(join(dataDir, 'engine.json'));
  execFileSync('mkfifo', [join(dataDir, 'engine.json')]);
  expect(mayHave(PORT + 1, dataDir)).toBe(true);
});

test.runIf(process.geteuid?.() === 0)('a record that another user could replace is not read', () => {
  const JANE = 64_002;
  const dataDir = dataFolder();
  const ofJane = join(dataDir, 'jane');
  mkdirSync(ofJane);
  chownSync(ofJane, JANE, JANE);
  symlinkSync(dataDir, join(ofJane, 'link'));
  expect(mayHave(PORT + 1, join(ofJane, 'link'))).toBe(true);
  chownSync(dataDir, JANE, JANE);
  expect(mayHave(PORT + 1, dataDir)).toBe(true);
});
