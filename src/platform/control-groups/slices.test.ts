import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openCgroups } from './cgroups.ts';
import { limitProperties, openSlices, sliceName, slicePath } from './slices.ts';

test('the name of a slice contains the names of its parents, and its group is below theirs', () => {
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
] as const)('limits become the properties of a systemd unit for cgroup v%d', (version, properties) => {
  expect(limitProperties(limits, version)).toEqual(properties);
});

test('an omitted limit sets no property of the systemd unit', () => {
  expect(limitProperties({}, 2)).toEqual([]);
  expect(limitProperties({ hugepageBytes: { '1GB': 0 } }, 2)).toEqual([]);
});

test('OOM kills of a slice are read from its control group', async () => {
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

test('the slice and its children have drop-ins that keep them running during a shutdown of the machine', async () => {
  const root = mkdtempSync(join(tmpdir(), 'lifepod-slices-'));
  const path = process.env['PATH'];
  try {
    // No request must reach systemd on this machine.
    process.env['PATH'] = root;
    writeFileSync(join(root, 'cgroup.controllers'), 'memory');
    const units = join(root, 'units');
    const slices = await openSlices(await openCgroups(root), units);
    await expect(slices.set('/a-b/c', {})).rejects.toThrow('systemd refuses the slice a_b.slice');
    expect(readdirSync(units).sort()).toEqual(['a_b-.slice.d', 'a_b.slice.d']);
    for (const folder of readdirSync(units))
      expect(readFileSync(join(units, folder, 'lifepod.conf'), 'utf8')).toBe('[Unit]\nDefaultDependencies=no\n');
    await slices.remove('/a-b/c');
    expect(existsSync(join(units, 'a_b.slice.d'))).toBe(true);
    await slices.remove('/a-b');
    expect(readdirSync(units)).toEqual([]);
  } finally {
    process.env['PATH'] = path;
    rmSync(root, { recursive: true });
  }
});
