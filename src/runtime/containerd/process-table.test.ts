/** Uses real processes, which end when their standard input is closed. */
import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import { childrenOf, haveEnded, listProcesses } from '../../platform/processes.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { containerdPaths } from './paths.ts';
import { findContainerd, findShims, listeningSockets } from './process-table.ts';

const paths = containerdPaths(`/nonexistent/lifepod-process-table-${process.pid}`);
const children: ChildProcess[] = [];
afterEach(async () => {
  for (const child of children.splice(0)) await end(child);
});

const start = (name: string, ...args: string[]): number => startAs(undefined, name, ...args);
function startAs(uid: number | undefined, name: string, ...args: string[]): number {
  const user = uid === undefined ? {} : { uid, gid: uid };
  const options = { argv0: name, stdio: ['pipe', 'ignore', 'ignore'], ...user } satisfies SpawnOptions;
  const child = spawn('/bin/sh', ['-c', 'read line', ...args], options);
  children.push(child);
  return child.pid ?? 0;
}
async function end(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null) return;
  const exited = once(child, 'exit');
  child.stdin?.end();
  await exited;
}

test('a containerd is found by its name and its configuration', () => {
  const pid = start('/usr/bin/containerd', '--config', paths.config);
  start('containerd', '--config', `${paths.config}.other`);
  start('containerd', paths.config);
  start('other', '--config', paths.config);
  expect(findContainerd(paths)).toEqual([pid]);
});

test('the shims are found by the beginning of their name and the address of containerd', () => {
  const pids = [
    start('/usr/bin/containerd-shim-runc-v2', '-address', paths.socket),
    start('containerd-shim', '--address', paths.socket),
  ];
  start('containerd-shim', '-address', `${paths.socket}.other`);
  start('other', '-address', paths.socket);
  expect(findShims(paths).sort()).toEqual(pids.sort());
});

test.runIf(process.geteuid?.() === 0)('processes of users are not found, although their arguments are the same', () => {
  const pids = [
    startAs(54_321, 'containerd', '--config', paths.config),
    startAs(54_321, 'containerd-shim', '-address', paths.socket),
  ];
  for (const pid of pids) expect(listProcesses().map((each) => each.pid)).toContain(pid);
  expect([findContainerd(paths), findShims(paths)]).toEqual([[], []]);
});

const mayUnshare = spawnSync('unshare', ['--pid', '--fork', 'true']).status === 0;
test.runIf(mayUnshare)('processes in a container are not found, although their paths are the same', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-process-table-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [name, ...args] of [
    ['containerd', '--config', paths.config],
    ['containerd-shim-runc-v2', '-address', paths.socket],
  ] as const) {
    symlinkSync('/bin/sh', join(folder, name));
    const child = spawn('unshare', ['--pid', '--fork', join(folder, name), '-c', 'echo; read line; exit', ...args], {
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    children.push(child);
    await once(child.stdout, 'data');
    expect(
      listProcesses().filter((each) => basename(each.args[0] ?? '') === name && each.args.includes(args[1])),
    ).toHaveLength(1);
  }
  expect([findContainerd(paths), findShims(paths)]).toEqual([[], []]);
});

test('the Unix sockets on which a process listens are found by their paths, also after their deletion', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod process-table-'));
  const [server, other] = [createServer(), createServer()];
  const path = join(folder, 'a.sock');
  server.listen(path);
  await once(server, 'listening');
  const client = connect(path);
  await once(client, 'connect');
  other.listen(0, '127.0.0.1');
  rmSync(folder, { recursive: true });
  const pid = start('without sockets');
  expect([listeningSockets([process.pid]), listeningSockets([pid])]).toEqual([expect.arrayContaining([path]), []]);
  client.destroy();
  for (const each of [server, other]) each.close();
});

test('the children of processes are found', () => {
  const pid = start('child');
  expect(childrenOf([process.pid])).toContain(pid);
  expect(childrenOf([pid])).toEqual([]);
});

test('the wait for the end of processes ends with false after its time, and with true once all have ended', async () => {
  const timers = createVirtualTimers(0);
  const pids = [start('first'), start('second')];
  await end(children[0]);
  let result: boolean | undefined;
  void haveEnded(pids, 100, timers).then((ended) => {
    result = ended;
  });
  await timers.run(() => result !== undefined, 1000);
  expect([result, timers.now()]).toEqual([false, 100]);
  await end(children[1]);
  expect(await haveEnded(pids, 100, timers)).toBe(true);
});
