import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Pod } from '../../api/generated/types.ts';
import { setUpImage, shortLayers, type VolumeImages } from './image.ts';

const layersOf = (count: number): string =>
  `lowerdir=${Array.from({ length: count }, (_, n) => `/var/lib/lifepod/containerd/snapshots/${n}/fs`).join(':')}`;

test('shortLayers() makes the layers of an image relative to their common folder', () => {
  expect(shortLayers(['index=off', 'lowerdir=/d/snapshots/12/fs:/d/snapshots/7/fs'])).toEqual({
    cwd: '/d/snapshots',
    options: ['index=off', 'lowerdir=12/fs:7/fs'],
  });
  expect(shortLayers([layersOf(127)]).options.join(',').length).toBeLessThan(4096);
});

test('shortLayers() rejects more layers than the kernel accepts', () => {
  expect(() => shortLayers([layersOf(1000)])).toThrow('the image has more layers than can be mounted: 1000');
});

test('shortLayers() leaves options without layers unchanged', () => {
  expect(shortLayers(['rbind', 'ro'])).toMatchObject({ options: ['rbind', 'ro'] });
});

test.each(['Always', 'IfNotPresent', 'Never'])(
  'setUpImage() rejects an image name that is not valid without a look-up or a pull, with pullPolicy %s',
  async (pullPolicy) => {
    const events: string[] = [];
    const unused = (): never => expect.unreachable();
    const images: VolumeImages = {
      status: unused,
      pull: unused,
      mounts: unused,
      release: unused,
      event: (_, type, reason) => events.push(`${type} ${reason}`),
    };
    const pod: Pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' } };
    const volume = { name: 'v', image: { reference: 'Data:1', pullPolicy } };
    const folder = join(mkdtempSync(join(tmpdir(), 'lifepod-image-')), 'v');
    await expect(setUpImage(images, pod, volume, folder, AbortSignal.timeout(10_000))).rejects.toMatchObject({
      volume: 'v',
      reason: 'InvalidImageName',
      message: expect.stringContaining(`couldn't parse image name "Data:1": invalid reference format`),
    });
    expect(events).toEqual(['Warning InspectFailed']);
  },
);
