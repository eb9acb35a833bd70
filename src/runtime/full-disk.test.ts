import { expect, test } from 'vitest';
import { fullDisk, fullDiskText } from './full-disk.ts';

const ROOT = '/var/lib/lifepod/containerd/root';

test.each([
  [
    `rpc error: code = Unknown desc = failed to x "y/z": write ${ROOT}/io.containerd.metadata.v1.bolt/meta.db: no space left on device`,
    ROOT,
  ],
  [
    `mount callback failed on ${ROOT}/tmpmounts/m35: write ${ROOT}/tmpmounts/m35/file: no space left on device: unknown`,
    ROOT,
  ],
  ['failed to create "/data folder/sandboxes/x": disk quota exceeded', '/data folder/sandboxes'],
  ['failed to mount /a/b on /data/x: no space left on device', '/data'],
  ["ENOSPC: no space left on device, mkdir '/var/lib/lifepod/pods/1'", '/var/lib/lifepod/pods'],
  ['mkdir /x: no space left on device', '/'],
  ['ENOSPC: no space left on device, write', undefined],
])('the message %j is about the full disk of the folder %s', (message, folder) => {
  expect(fullDisk(message)).toEqual({ folder });
});

test.each([
  'no address is free',
  'unable to join session keyring: unable to create session key: disk quota exceeded',
  'mkdir /sys/fs/cgroup/memory/kubepods/x: no space left on device',
  'write /sys/fs/cgroup/cpuset/kubepods/x/cgroup.procs: no space left on device',
  'inotify_add_watch: no space left on device',
])('the message %j is not about a full disk', (message) => {
  expect(fullDisk(message)).toBeUndefined();
  expect(fullDiskText(message)).toBeUndefined();
});

test('the text about a full disk names its folder, if known', () => {
  expect(fullDiskText(`write ${ROOT}/io.containerd.x/y: no space left on device`)).toBe(
    `the disk of the folder ${ROOT} is full`,
  );
  expect(fullDiskText('no space left on device')).toBe('the disk of its node is full');
});
