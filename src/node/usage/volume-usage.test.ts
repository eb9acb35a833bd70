import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Pod, Volume } from '../../api/generated/types.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import { createVolumeReader } from './volume-usage.ts';

const { signal } = new AbortController();
let root: string;
let timers: VirtualTimers;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'lifepod-volumes-'));
  timers = createVirtualTimers();
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const podWith = (...volumes: Volume[]): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', uid: 'u' },
  spec: { containers: [], volumes },
});
const cache = (): string => join(root, 'u/volumes/kubernetes.io~empty-dir/cache');
const reader = () =>
  createVolumeReader((uid) => ({ disk: join(root, uid), memory: join(root, 'memory', uid) }), timers, signal);

test('the volume reader measures the volumes of a Pod with all files in them, but not hostPath volumes', async () => {
  mkdirSync(join(cache(), 'deep/er'), { recursive: true });
  writeFileSync(join(cache(), 'deep/er/file'), new Uint8Array(100_000));
  mkdirSync(join(root, 'u/volumes/kubernetes.io~configmap/settings'), { recursive: true });
  const pod = podWith(
    { name: 'cache', emptyDir: {} },
    { name: 'settings', configMap: { name: 's' } },
    { name: 'gone', emptyDir: {} },
    { name: 'host', hostPath: { path: '/' } },
  );
  const volumes = await reader().read(pod);
  expect(volumes.map(({ name, inodesUsed, own }) => [name, inodesUsed, own])).toEqual([
    ['cache', 4, undefined],
    ['settings', 1, undefined],
  ]);
  expect(volumes[0]?.usedBytes).toBeGreaterThanOrEqual(100_000);
  expect(volumes[0]?.usedBytes).toBeLessThan(200_000);
});

test("the volume reader reports the disk of a claim's volume, even if it is the disk of the node", async () => {
  mkdirSync(join(root, 'u/volumes/kubernetes.io~local-volume/data'), { recursive: true });
  const pod = podWith({ name: 'data', persistentVolumeClaim: { claimName: 'c' } }, { name: 'cache', emptyDir: {} });
  const volumes = reader();
  const [usage] = await volumes.read(pod);
  expect(usage).toMatchObject({ name: 'data', claim: 'c', own: { capacityBytes: expect.any(Number) } });
  expect(await volumes.claims([pod])).toMatchObject([{ pod, usage: { claim: 'c' } }]);
});

test('requests for the volumes of a Pod within 10 s get the same result', async () => {
  mkdirSync(cache(), { recursive: true });
  const pod = podWith({ name: 'cache', emptyDir: {} });
  const volumes = reader();
  const inodes = async (): Promise<number | undefined> => (await volumes.read(pod))[0]?.inodesUsed;
  expect(await inodes()).toBe(1);
  writeFileSync(join(cache(), 'file'), '');
  timers.advance(9_999);
  expect(await inodes()).toBe(1);
  timers.advance(1);
  expect(await inodes()).toBe(2);
});
