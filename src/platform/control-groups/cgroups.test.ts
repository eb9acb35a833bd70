/** The scratch folder imitates the kernel's files. test/integration/cgroups.test.ts uses real groups. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { cpuWeight, limitsSwap, openCgroups } from './cgroups.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'lifepod-cgroups-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const write = (path: string, text: string): void => {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
};
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const limits = {
  cpuShares: 512,
  cpuQuotaMicros: 50_000,
  memoryBytes: 1024,
  pids: 9,
  hugepageBytes: { '2MB': 4096, '1GB': 0 },
};

test('cgroup v1: limits are written to a group in the hierarchy of each controller', async () => {
  for (const name of ['cpu', 'memory', 'pids', 'hugetlb', 'freezer']) mkdirSync(join(root, name));
  const cgroups = await openCgroups(root);
  expect(cgroups.version).toBe(1);
  await cgroups.set('/a/b', limits);
  expect(read('cpu/a/b/cpu.shares')).toBe('512');
  expect(read('cpu/a/b/cpu.cfs_period_us')).toBe('100000');
  expect(read('cpu/a/b/cpu.cfs_quota_us')).toBe('50000');
  expect(read('memory/a/b/memory.limit_in_bytes')).toBe('1024');
  expect(read('pids/a/b/pids.max')).toBe('9');
  expect(read('hugetlb/a/b/hugetlb.2MB.limit_in_bytes')).toBe('4096');
  expect(read('hugetlb/a/b/hugetlb.1GB.limit_in_bytes')).toBe('0');
  expect(existsSync(join(root, 'freezer/a'))).toBe(false);
});

test('cgroup v1: a controller that is not mounted is ignored, and a link to a hierarchy is followed', async () => {
  mkdirSync(join(root, 'cpu,cpuacct'));
  symlinkSync('cpu,cpuacct', join(root, 'cpu'));
  const cgroups = await openCgroups(root);
  await cgroups.set('/a', { ...limits, cpuShares: 2 });
  expect(read('cpu,cpuacct/a/cpu.shares')).toBe('2');
  expect(existsSync(join(root, 'memory'))).toBe(false);
  expect(await cgroups.children('/')).toEqual(['a']);
});

test('cgroup v2: controllers are enabled from the root down, and limits are written to one group', async () => {
  write('cgroup.controllers', 'cpuset cpu io memory hugetlb pids rdma\n');
  const cgroups = await openCgroups(root);
  expect(cgroups.version).toBe(2);
  await cgroups.set('/a/b', limits);
  for (const group of ['', 'a/']) expect(read(`${group}cgroup.subtree_control`)).toBe('+cpu +hugetlb +memory +pids');
  expect(existsSync(join(root, 'a/b/cgroup.subtree_control'))).toBe(false);
  expect(read('a/b/cpu.weight')).toBe('20');
  expect(read('a/b/cpu.max')).toBe('50000 100000');
  expect(read('a/b/memory.max')).toBe('1024');
  expect(read('a/b/pids.max')).toBe('9');
  expect(read('a/b/hugetlb.2MB.max')).toBe('4096');
  expect(read('a/b/hugetlb.1GB.max')).toBe('0');
});

test('cgroup v2: a controller that the machine does not offer is ignored', async () => {
  write('cgroup.controllers', 'memory');
  const cgroups = await openCgroups(root);
  await cgroups.set('/a', limits);
  expect(read('cgroup.subtree_control')).toBe('+memory');
  expect(read('a/memory.max')).toBe('1024');
  expect(existsSync(join(root, 'a/cpu.max'))).toBe(false);
});

test('cgroup v2: a controller that the kernel refuses to enable is ignored', async () => {
  write('cgroup.controllers', 'cpu memory');
  // This link leads to a kernel file that accepts only numbers, so a write of controller names fails.
  symlinkSync('/proc/self/oom_score_adj', join(root, 'cgroup.subtree_control'));
  const cgroups = await openCgroups(root);
  await cgroups.set('/a', limits);
  expect(existsSync(join(root, 'a'))).toBe(true);
  expect(existsSync(join(root, 'a/memory.max'))).toBe(false);
});

test('a group that cannot be created causes an error that names its path', async () => {
  symlinkSync('/sys/kernel', join(root, 'memory'));
  const cgroups = await openCgroups(root);
  await expect(cgroups.set('/a', limits)).rejects.toThrow(
    `the control group ${join(root, 'memory/a')} cannot be created (EPERM): run lifepod where`,
  );
});

test.each([
  [1, 'memory/memory.memsw.limit_in_bytes'],
  [2, 'system.slice/memory.swap.max'],
])('cgroup v%i: limitsSwap reports whether %s exists', (version, file) => {
  write(version === 1 ? 'memory/memory.limit_in_bytes' : 'cgroup.controllers', '');
  expect(limitsSwap(root)).toBe(false);
  write(file, '');
  expect(limitsSwap(root)).toBe(true);
});

test.each([
  ['a kernel that counts groups', 'low 0\nmax 7\noom 2\noom_kill 5\noom_group_kill 1\n', 1, 'group'],
  ['an older kernel', 'low 0\nhigh 0\nmax 7\noom 2\noom_kill 5\n', 5, 'process'],
])('cgroup v2: OOM kills are counted by %s', async (_, events, count, unit) => {
  write('cgroup.controllers', 'memory');
  const cgroups = await openCgroups(root);
  expect(await cgroups.oomKills('/a')).toBe(undefined);
  write('a/memory.events', events);
  const kills = await cgroups.oomKills('/a');
  expect(kills).toEqual({ groupId: expect.stringMatching(/^\d+$/), count, unit });
  write('b/memory.events', events);
  expect((await cgroups.oomKills('/b'))?.groupId).not.toBe(kills?.groupId);
});

test('cgroup v1: OOM kills are not counted', async () => {
  write('memory/a/memory.oom_control', 'oom_kill_disable 0\nunder_oom 0\noom_kill 1\n');
  expect(await (await openCgroups(root)).oomKills('/a')).toBe(undefined);
});

test('setting one limit of a group leaves the others unchanged', async () => {
  write('cgroup.controllers', 'cpu memory');
  const cgroups = await openCgroups(root);
  await cgroups.set('/a', { cpuShares: 2, memoryBytes: 5 });
  await cgroups.set('/a', { cpuShares: 262_144 });
  expect([read('a/cpu.weight'), read('a/memory.max')]).toEqual(['10000', '5']);
});

test('a group is removed with its subgroups, and removing it again succeeds', async () => {
  write('cgroup.controllers', '');
  const cgroups = await openCgroups(root);
  await cgroups.set('/a/b/c', {});
  await cgroups.set('/a/d', {});
  expect((await cgroups.children('/a')).sort()).toEqual(['b', 'd']);
  await cgroups.remove('/a');
  await cgroups.remove('/a');
  expect(await cgroups.children('/a')).toEqual([]);
  expect(existsSync(join(root, 'a'))).toBe(false);
});

test.each([
  [2, 1],
  [102, 4],
  [1024, 39],
  [262_144, 10_000],
])('%i CPU shares of cgroup v1 are the weight %i in v2', (shares, weight) => {
  expect(cpuWeight(shares)).toBe(weight);
});
