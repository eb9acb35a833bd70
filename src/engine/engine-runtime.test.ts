import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import { nodePlatform } from '../platform/node-js.ts';
import { connectOwnRuntime } from './engine-runtime.ts';

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

test('connecting to a socket that does not exist fails with the reason and the remedy', async () => {
  const endpoint = `unix://${join(tmpdir(), 'lifepod-none', 'c.sock')}`;
  await expect(connectOwnRuntime(endpoint, '/d', nodePlatform('error'))).rejects.toThrow(
    /^the container runtime at \S+ does not answer: [^;]*ENOENT [^;]*lifepod-none\/c\.sock; start it$/,
  );
});
