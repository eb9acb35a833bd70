import { expect, test } from 'vitest';
import { shortLayers } from './image.ts';

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
