/** Names and properties of slices, and what is read in their groups. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openCgroups } from './cgroups.ts';
import { limitProperties, openSlices, sliceName, slicePath } from './slices.ts';

test('a slice is named after those that it is in, and its group is below theirs', () => {
  expect(sliceName('/lifepod-1a/kubepods/burstable/pod12-34')).toBe('lifepod_1a-kubepods-burstable-pod12_34.slice');
  expect(slicePath('/lifepod-1a/kubepods/pod12-34')).toBe(
    '/lifepod_1a.slice/lifepod_1a-kubepods.slice/lifepod_1a-kubepods-pod12_34.slice',
  );
});

const limits = { cpuShares: 512, cpuQuotaMicros: 50_000, memoryBytes: 1024, pids: 9, hugepageBytes: { '2MB': 4096 } };

test.each([
  [
    2,
    [
      ['CPUWeight', 't', '20'],
      ['CPUQuotaPerSecUSec', 't', '500000'],
      ['MemoryMax', 't', '1024'],
      ['TasksMax', 't', '9'],
    ],
  ],
  [
    1,
    [
      ['CPUShares', 't', '512'],
      ['CPUQuotaPerSecUSec', 't', '500000'],
      ['MemoryLimit', 't', '1024'],
      ['TasksMax', 't', '9'],
    ],
  ],
] as const)('the limits are properties of the unit, with control groups of version %d', (version, properties) => {
  expect(limitProperties(limits, version)).toEqual(properties);
});

test('a limit that is not given is no property', () => {
  expect(limitProperties({}, 2)).toEqual([]);
  expect(limitProperties({ hugepageBytes: { '1GB': 0 } }, 2)).toEqual([]);
});

test('how often memory ran out is read in the group of the slice', async () => {
  const root = mkdtempSync(join(tmpdir(), 'lifepod-slices-'));
  try {
    writeFileSync(join(root, 'cgroup.controllers'), 'memory');
    mkdirSync(join(root, slicePath('/a-b/c')), { recursive: true });
    writeFileSync(join(root, 'a_b.slice/a_b-c.slice/memory.events'), 'oom_kill 2\noom_group_kill 1\n');
    const slices = await openSlices(await openCgroups(root));
    expect(await slices.oomKills('/a-b/c')).toMatchObject({ count: 1, unit: 'group' });
  } finally {
    rmSync(root, { recursive: true });
  }
});
