import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cgroupFolders, parseCgroups, removeEmptyCgroups } from './cgroups.ts';

test.each([
  ['version 2', '0::/kubepods/pod1\n', false, ['/sys/fs/cgroup/kubepods/pod1']],
  [
    'version 1',
    '9:cpu,cpuacct:/pod1\n1:name=systemd:/pod1/c:d\n',
    false,
    ['/sys/fs/cgroup/cpu,cpuacct/pod1', '/sys/fs/cgroup/systemd/pod1/c:d'],
  ],
  ['both versions', '9:cpu:/pod1\n0::/pod1\n', true, ['/sys/fs/cgroup/cpu/pod1', '/sys/fs/cgroup/unified/pod1']],
])('the folders of control groups are found on a machine with %s', (_, lines, hybrid, folders) => {
  expect(parseCgroups(lines, hybrid)).toEqual(folders);
});

test('a process that runs has a control group, and a process that has ended has none', () => {
  expect(cgroupFolders(process.pid)).not.toEqual([]);
  expect(cgroupFolders(2 ** 30)).toEqual([]);
});

test('only empty control groups are removed, and missing ones are ignored', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-cgroups-'));
  const [empty, used] = [join(folder, 'empty'), join(folder, 'used')];
  for (const each of [empty, used]) mkdirSync(each);
  writeFileSync(join(used, 'file'), '');
  removeEmptyCgroups([join(folder, 'missing'), used, empty]);
  expect([existsSync(empty), existsSync(used)]).toEqual([false, true]);
  rmSync(folder, { recursive: true });
});
