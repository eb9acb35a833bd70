/** The containers end while containerd is not running. Their exit codes are read from their real shims. */
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { containerdPaths } from '../../src/runtime/containerd/paths.ts';
import { clearRunState } from '../../src/runtime/containerd/run-state.ts';
import { createShimExits } from '../../src/runtime/containerd/shim-exits.ts';
import { connectTtrpc } from '../../src/runtime/containerd/ttrpc.ts';
import type { ContainerConfig, SandboxConfig } from '../../src/runtime/runtime.ts';
import { BUSYBOX, type RealRuntime, startRealRuntime } from './containerd-fixture.ts';

const never = new AbortController().signal;
let real: RealRuntime;
let ids: string[];
/** The exit codes with which the containers end on SIGTERM. */
const CODES = [0, 7, 42];

beforeAll(async () => {
  real = await startRealRuntime();
  const { runtime, where } = real;
  const pod = { uid: 'uid-exits', namespace: 'default', name: 'exits' };
  const sandboxConfig: SandboxConfig = {
    pod,
    attempt: 0,
    hostname: 'exits',
    logDirectory: where.logDirectory,
    labels: {},
    annotations: {},
  };
  const sandbox = await runtime.runSandbox(sandboxConfig, never);
  const image = await runtime.imageStatus(BUSYBOX, never);
  const run = async (code: number): Promise<string> => {
    const command = ['sh', '-c', `trap 'exit ${code}' TERM; echo armed; while :; do sleep 3600 & wait $!; done`];
    const config: ContainerConfig = {
      pod,
      name: `exits-${code}`,
      kind: 'app',
      attempt: 0,
      imageId: image?.id ?? '',
      imageName: BUSYBOX,
      command,
      env: [],
      mounts: [],
      logPath: `${code}.log`,
      annotations: {},
      resources: {},
      security: {},
    };
    const id = await runtime.createContainer(sandbox, sandboxConfig, config, never);
    await runtime.startContainer(id, never);
    while (!readFileSync(join(where.logDirectory, config.logPath), 'utf8').includes('armed'))
      await new Promise(setImmediate);
    return id;
  };
  ids = await Promise.all(CODES.map(run));
});
afterAll(async () => {
  if (real === undefined) return;
  await real.runtime.close();
  await real.containerd.stop();
  await clearRunState(real.where.options);
  await real.where.remove();
});

const terminate = (id: string): void => {
  const { state } = containerdPaths(real.where.dataDir);
  const pid = Number(readFileSync(join(state, 'io.containerd.runtime.v2.task/k8s.io', id, 'init.pid'), 'utf8'));
  process.kill(pid, 'SIGTERM');
};

test('exit codes are read both for exits before watch() and for exits after it', async () => {
  const { where, containerd } = real;
  const exits = createShimExits({ ...where.options, state: containerdPaths(where.dataDir).state });
  const [before = '', after = '', never] = ids;
  await containerd.stop();
  terminate(before);
  let ended: ReturnType<typeof exits.exitOf>;
  // No event reports that the shim has noticed the exit of its process, so the test asks the shim repeatedly.
  while (ended === undefined) {
    exits.unwatch();
    expect(await exits.watch()).toBe(1 + CODES.length);
    ended = exits.exitOf(before);
  }
  expect(ended).toEqual({ exitCode: 0, finishedAt: expect.any(Number) });
  expect(Math.abs(Date.now() - ended.finishedAt)).toBeLessThan(60_000);
  expect(exits.exitOf(after)).toBeUndefined();
  terminate(after);
  while (exits.exitOf(after) === undefined) await new Promise(setImmediate);
  expect(exits.exitOf(after)?.exitCode).toBe(7);
  exits.unwatch();
  expect(exits.exitOf(never ?? '')).toBeUndefined();
  exits.keepOnly(new Set([after]));
  expect([exits.exitOf(before), exits.exitOf(after)?.exitCode]).toEqual([undefined, 7]);
});

test('the connection to a shim that does not know the container is closed', async () => {
  const { where } = real;
  const { state } = containerdPaths(where.dataDir);
  const bundles = join(state, 'io.containerd.runtime.v2.task/k8s.io');
  const shim = readFileSync(join(bundles, ids[2] ?? '', 'address'), 'utf8').slice('unix://'.length);
  const path = join(where.dataDir, 'shim-proxy.sock');
  // A proxy in front of the shim shows when the connection is closed.
  const proxy = createServer((client) => pipeline(client, connect(shim), client, () => undefined));
  proxy.listen(path);
  await once(proxy, 'listening');
  // containerd leaves such a bundle behind if it is killed while it removes a container.
  mkdirSync(join(bundles, 'removed'));
  writeFileSync(join(bundles, 'removed', 'address'), `unix://${path}`);
  const exits = createShimExits({ ...where.options, state });
  try {
    const connected = once(proxy, 'connection') as Promise<[Socket]>;
    await exits.watch();
    const [client] = await connected;
    if (!client.closed) await once(client, 'close');
    expect(exits.exitOf('removed')).toBeUndefined();
  } finally {
    exits.unwatch();
    proxy.close();
    rmSync(join(bundles, 'removed'), { recursive: true });
  }
});

test('ttrpc calls fail without a listener, when the connection ends, and when a frame is too large', async () => {
  const path = join(real.where.dataDir, 'shim.sock');
  const call = () => connectTtrpc(path).call('service', 'Method', Buffer.alloc(0));
  await expect(call()).rejects.toThrow('ENOENT');
  const answers: ((header: Buffer) => Buffer | undefined)[] = [
    () => undefined,
    (header) => {
      header.writeUInt32BE(2 ** 31, 0);
      return header;
    },
    () => Buffer.from([0, 0, 0, 1, 0, 0, 0, 1, 2, 0, 0xff]),
  ];
  const server = createServer((socket) => {
    socket.once('data', (data) => {
      const answer = answers.shift()?.(Buffer.from(data.subarray(0, 10)));
      if (answer === undefined) socket.destroy();
      else socket.write(answer);
    });
  });
  server.listen(path);
  await once(server, 'listening');
  try {
    await expect(call()).rejects.toThrow('the connection ended');
    await expect(call()).rejects.toThrow('a frame of 2147483648 bytes is too large');
    await expect(call()).rejects.toThrow();
  } finally {
    server.close();
  }
});
