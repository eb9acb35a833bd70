import { expect, test } from 'vitest';
import { containerOf, podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { Pod } from '../../api/generated/types.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createBurstableShares } from './burstable-shares.ts';

const podWith = (uid: string, requests?: Record<string, string>): Pod => {
  const pod = podOf({ containers: [containerOf('app', requests && { resources: { requests } })] });
  return { ...pod, metadata: { ...pod.metadata, uid } };
};

function setUp() {
  const written: (number | undefined)[] = [];
  const writes: PromiseWithResolvers<void>[] = [];
  const warnings: string[] = [];
  const cgroups = {
    set(group: string, { cpuShares }: { cpuShares?: number }): Promise<void> {
      expect(group).toBe('/burstable');
      written.push(cpuShares);
      const write = Promise.withResolvers<void>();
      writes.push(write);
      return write.promise;
    },
  };
  const log = { ...silentLog, warn: (message: string) => void warnings.push(message) };
  return { shares: createBurstableShares(cgroups, '/burstable', log), written, writes, warnings };
}

test('the shares follow the sum of the requests of Burstable Pods, with one write at a time', async () => {
  const { shares, written, writes } = setUp();
  shares.add(podWith('best-effort'));
  shares.remove(podWith('unknown', { cpu: '1' }));
  expect(written).toEqual([]);
  shares.add(podWith('a', { cpu: '1' }));
  shares.add(podWith('b', { cpu: '500m' }));
  const done = shares.written();
  expect(written).toEqual([1024]);
  writes[0]?.resolve();
  await Promise.resolve();
  await Promise.resolve();
  await Promise.resolve();
  expect(written).toEqual([1024, 1536]);
  writes[1]?.resolve();
  await done;
  shares.remove(podWith('a', { cpu: '1' }));
  expect(written.slice(2)).toEqual([512]);
  writes[2]?.resolve();
  await shares.written();
  expect(written).toHaveLength(3);
});

test('a failed write is logged, and repeated only with the next change', async () => {
  const { shares, written, writes, warnings } = setUp();
  shares.add(podWith('a', { cpu: '1' }));
  writes[0]?.reject(new Error('read-only'));
  await shares.written();
  expect([written, warnings]).toEqual([[1024], ['cannot update the CPU shares of Burstable Pods']]);
  shares.add(podWith('a', { cpu: '1' }));
  expect(written).toEqual([1024, 1024]);
});
