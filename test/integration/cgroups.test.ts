/** Uses real control groups with processes in them, on a hybrid machine of both versions. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { CGROUP_ROOT, type Cgroups, openCgroups } from '../../src/platform/control-groups/cgroups.ts';

const unified = join(CGROUP_ROOT, 'unified');
const roots = existsSync(join(unified, 'cgroup.controllers')) ? [CGROUP_ROOT, unified] : [CGROUP_ROOT];
const group = `/lifepod-test-${process.pid}`;

let cgroups: Cgroups;
afterEach(() => cgroups.remove(group));

const folder = (root: string): string => join(root, root === CGROUP_ROOT && cgroups.version === 1 ? 'pids' : '', group);

test.each(roots)('removing the control group in %s kills the processes in its child groups', async (root) => {
  cgroups = await openCgroups(root);
  await cgroups.set(`${group}/a/b`, { pids: 10, hugepageBytes: { '2MB': 2 ** 21 } });
  expect(await cgroups.hasProcesses(group)).toBe(false);
  expect(await cgroups.children(group)).toEqual(['a']);
  const child = spawn('sleep', ['600'], { stdio: 'ignore' });
  await once(child, 'spawn');
  const exited = once(child, 'exit');
  writeFileSync(join(folder(root), 'a/b/cgroup.procs'), String(child.pid));
  await cgroups.removeEmpty(group);
  expect(existsSync(join(folder(root), 'a/b'))).toBe(true);
  expect([await cgroups.hasProcesses(group), await cgroups.hasProcesses(`${group}/c`)]).toEqual([true, false]);
  await cgroups.remove(group);
  expect(await exited).toEqual([null, 'SIGKILL']);
  expect(existsSync(folder(root))).toBe(false);
  expect(await cgroups.children(group)).toEqual([]);
});

test('the kernel accepts the limits of a group', async () => {
  cgroups = await openCgroups();
  await cgroups.set(group, { cpuShares: 512, cpuQuotaMicros: 50_000, memoryBytes: 2 ** 24, pids: 10 });
  const [controller, name] = cgroups.version === 1 ? ['memory', 'memory.limit_in_bytes'] : ['', 'memory.max'];
  expect(readFileSync(join(CGROUP_ROOT, controller, group, name), 'utf8').trim()).toBe(String(2 ** 24));
});

test.runIf(roots.length === 2)('the kernel accepts a limit of huge pages for a group of version 2', async () => {
  cgroups = await openCgroups(unified);
  expect(cgroups.version).toBe(2);
  await cgroups.set(group, { hugepageBytes: { '2MB': 2 ** 22 } });
  expect(readFileSync(join(unified, group, 'hugetlb.2MB.max'), 'utf8').trim()).toBe(String(2 ** 22));
});

test.runIf(roots.length === 2)(
  'a group is created although another process has disabled its controller in the parent group',
  async () => {
    cgroups = await openCgroups(unified);
    const hugepageBytes = { '2MB': 2 ** 22 };
    await cgroups.set(`${group}/a`, { hugepageBytes });
    writeFileSync(join(unified, group, 'cgroup.subtree_control'), '-hugetlb');
    await cgroups.set(`${group}/a/b`, { hugepageBytes });
    expect(readFileSync(join(unified, group, 'a/b/hugetlb.2MB.max'), 'utf8').trim()).toBe(String(2 ** 22));
  },
);

test.runIf(roots.length === 2)('a group with a threaded child is removed', async () => {
  cgroups = await openCgroups(unified);
  await cgroups.set(`${group}/a`, {});
  const child = spawn('sleep', ['600'], { stdio: 'ignore' });
  await once(child, 'spawn');
  const exited = once(child, 'exit');
  mkdirSync(join(unified, group, 'a/threads'));
  writeFileSync(join(unified, group, 'a/threads/cgroup.type'), 'threaded');
  writeFileSync(join(unified, group, 'a/cgroup.procs'), String(child.pid));
  writeFileSync(join(unified, group, 'a/threads/cgroup.threads'), String(child.pid));
  expect([await cgroups.hasProcesses(group), await cgroups.hasProcesses(`${group}/a`)]).toEqual([true, true]);
  await cgroups.remove(group);
  expect(await exited).toEqual([null, 'SIGKILL']);
  expect(existsSync(join(unified, group))).toBe(false);
});
