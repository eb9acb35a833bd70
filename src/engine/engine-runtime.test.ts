import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { expect, test, vi } from 'vitest';
import { nodePlatform } from '../platform/node-js.ts';
import { serviceCommands } from '../platform/programs/service-commands.ts';
import { rootProgram } from '../platform/programs/typed-program.ts';
import { silentLog } from '../platform/silent-log.ts';
import { containerd, serveContainerd } from '../runtime/images/containerd-fixture.ts';
import { completeNames, connectOwnRuntime, otherRuntime } from './engine-runtime.ts';
import { startRuntimeHint } from './options/runtime-endpoint.ts';

test('connecting to a containerd without its CRI plugin fails with the setting to change', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-no-cri-'));
  const endpoint = `unix://${join(folder, 'c.sock')}`;
  const server = new Server();
  try {
    await new Promise<void>((resolve, reject) =>
      server.bindAsync(endpoint, ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve())),
    );
    await expect(connectOwnRuntime(endpoint, folder, nodePlatform('error'))).rejects.toThrow(
      `the container runtime at ${endpoint} does not offer CRI v1: remove "cri" from disabled_plugins`,
    );
  } finally {
    server.forceShutdown();
    rmSync(folder, { recursive: true, force: true });
  }
});

test('short names of images that cannot be completed do not prevent the start, but are logged', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-short-names-'));
  const endpoint = `unix://${join(folder, 'c.sock')}`;
  const { names, connection } = containerd({ 'web:1': 'x', 'sha256:x': 'x' });
  const server = await serveContainerd(endpoint, connection, (method) => {
    if (method.endsWith('Images/Create')) throw new Error('no space left on device');
  });
  const warn = vi.fn();
  const platform = { ...nodePlatform('error'), log: { ...silentLog, warn } };
  try {
    await completeNames(endpoint, platform, new AbortController().signal);
    expect(warn.mock.calls).toEqual([
      [expect.stringContaining('short names'), { error: expect.stringContaining('no space left') }],
    ]);
    expect(Object.keys(names)).toEqual(['web:1', 'sha256:x']);
    await expect(completeNames(endpoint, platform, AbortSignal.abort())).rejects.toThrow();
  } finally {
    server.close();
    rmSync(folder, { recursive: true, force: true });
  }
});

test('the remedy names the commands of systemd for a known socket, and what else the user can do', () => {
  const commands = (unit: string) => ({ start: `sudo systemctl start ${unit}`, log: `sudo journalctl -u ${unit}` });
  expect(startRuntimeHint('unix:///run/containerd/containerd.sock', commands)).toBe(
    "start it with 'sudo systemctl start containerd' ('sudo journalctl -u containerd' prints its log)",
  );
  expect(startRuntimeHint('unix:///run/containerd/containerd.sock', () => undefined)).toBe('start it');
  const failed = 'container runtime is down: connect ECONNREFUSED /run/crio/crio.sock';
  expect(startRuntimeHint(failed, commands)).toContain("'sudo systemctl start crio'");
  expect(startRuntimeHint('unix:///run/k3s/containerd/containerd.sock', commands)).toBe('start it');
  expect(serviceCommands('containerd', { SUDO_UID: '1000' }, true, true)).toEqual(commands('containerd'));
  expect(serviceCommands('containerd', {}, false, false)).toBeUndefined();
});

test('connecting to a socket that does not exist fails with the reason and the remedy', async () => {
  const endpoint = `unix://${join(tmpdir(), 'lifepod-none', 'c.sock')}`;
  await expect(connectOwnRuntime(endpoint, '/d', nodePlatform('error'))).rejects.toThrow(
    /^the container runtime at \S+ does not answer: connect ENOENT [^;]*lifepod-none\/c\.sock; start it$/,
  );
  await expect(
    connectOwnRuntime(endpoint, '/d', nodePlatform('error'), {}, async () => 'use another one'),
  ).rejects.toThrow(/; start it; use another one$/);
});

test('a private containerd is advised instead of a runtime of the machine that has no Pods of the data folder', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'lifepod-other-runtime-'));
  const containerRuntimeEndpoint = 'unix:///run/containerd/containerd.sock';
  try {
    expect(await otherRuntime({ dataDir })).toBeUndefined();
    const start = `${rootProgram()} up --container-runtime-endpoint ''`;
    expect(await otherRuntime({ dataDir, containerRuntimeEndpoint })).toBe(
      `${start} --data-dir ${dataDir} uses a private containerd instead`,
    );
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
});
