import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createPodMemory, podMemoryFolder } from './pod-memory.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'lifepod-memory-'));
  // Nothing is mounted, because the program mount(8) is not found.
  vi.stubEnv('PATH', join(root, 'bin'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(root, { recursive: true });
});

const { signal } = new AbortController();

test('ready() mounts nothing if something is mounted at the folder', async () => {
  const memory = createPodMemory('/proc', signal);
  await memory.ready();
  expect(memory.directory('u1')).toBe('/proc/u1');
});

test('ready() creates a private folder, shares a mount under way, and tries again after a failure', async () => {
  const folder = podMemoryFolder(root);
  const memory = createPodMemory(folder, signal);
  const first = memory.ready();
  expect(memory.ready()).toBe(first);
  await expect(first).rejects.toThrow('spawn mount ENOENT');
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  const second = memory.ready();
  expect(second).not.toBe(first);
  await expect(second).rejects.toThrow('spawn mount ENOENT');
});
