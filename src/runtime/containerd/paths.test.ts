import { expect, test } from 'vitest';
import { parseCgroups } from './cgroups.ts';
import { containerdConfig } from './config.ts';
import { containerdPaths } from './paths.ts';
import { mountPoints } from './run-state.ts';

test('the run folder is in the data folder if the resulting socket paths are short enough', () => {
  expect(containerdPaths('/var/lib/lifepod').socket).toBe('/var/lib/lifepod/run/containerd.sock');
  const room = 104 - '/run/containerd.sock.ttrpc'.length;
  const longest = `/${'x'.repeat(room - 1)}`;
  expect(containerdPaths(longest).run).toBe(`${longest}/run`);
  expect(containerdPaths(`${longest}x`).run).toMatch(/^\/run\/lifepod\/[0-9a-f]{16}$/);
});

test('two data folders never share a run folder', () => {
  const long = `/${'x'.repeat(200)}`;
  expect(containerdPaths(`${long}1`).run).not.toBe(containerdPaths(`${long}2`).run);
});

test('containerdConfig() quotes and escapes all values', () => {
  const options = { sandboxImage: 'a"b', cniConfDir: '/c\\d', cniBinDir: '/bin', restrictOomScoreAdj: true };
  const text = containerdConfig(containerdPaths('/data'), options);
  expect(text).toContain('sandbox_image = "a\\"b"');
  expect(text).toContain('conf_dir = "/c\\\\d"');
  expect(text).toContain('restrict_oom_score_adj = true');
  expect(text).toContain('config_path = "/data/certs.d:/etc/containerd/certs.d"');
});

test('mountPoints() decodes escaped characters', () => {
  const mountinfo = '36 35 98:0 / /mnt/a\\040b rw - ext4 /dev/sda rw\n37 36 0:5 / /mnt/a\\040b/c rw - tmpfs tmpfs rw\n';
  expect(mountPoints(mountinfo)).toEqual(['/mnt/a b', '/mnt/a b/c']);
});

test('parseCgroups() returns the folders of cgroup v2 and of v1', () => {
  expect(parseCgroups('0::/k8s.io/a\n', false)).toEqual(['/sys/fs/cgroup/k8s.io/a']);
  expect(parseCgroups('5:cpu,cpuacct:/k8s.io/a\n1:name=systemd:/k8s.io/a\n0::/k8s.io/a\n', true)).toEqual([
    '/sys/fs/cgroup/cpu,cpuacct/k8s.io/a',
    '/sys/fs/cgroup/systemd/k8s.io/a',
    '/sys/fs/cgroup/unified/k8s.io/a',
  ]);
});
