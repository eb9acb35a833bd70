import { expect, test } from 'vitest';
import { createVirtualTimers } from '../../../platform/virtual-timers.ts';
import type { Connection } from '../connection.ts';
import { imageMountCalls } from './image-mounts.ts';

test.each([
  ['native', '/var/lib/containerd/io.containerd.snapshotter.v1.native'],
  ['overlayfs', '/somewhere/else'],
])("an image's files are requested from the snapshotter %s if the image folder is %s", async (name, mountpoint) => {
  const asked: [string, string | undefined][] = [];
  const unary = async (method: string, request: { snapshotter?: string }): Promise<unknown> => {
    const call = method.split('/')[1] ?? '';
    asked.push([call, request.snapshotter]);
    if (call === 'ImageFsInfo') return { imageFilesystems: [{ fsId: { mountpoint } }] };
    if (call === 'ImageStatus') return { info: { info: '{"chainID":"sha256:top"}' } };
    return { mounts: [{ type: 'bind', source: '/s', options: [] }] };
  };
  const calls = imageMountCalls({ unary } as unknown as Connection, createVirtualTimers());
  const { signal } = new AbortController();
  await calls.imageMounts('i', 'k', signal);
  await calls.releaseImageMounts('k', signal);
  expect(asked).toEqual([
    ['ImageStatus', undefined],
    ['ImageFsInfo', undefined],
    ['View', name],
    ['Remove', name],
  ]);
});
