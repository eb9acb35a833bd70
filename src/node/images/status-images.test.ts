import { expect, test } from 'vitest';
import type { ImageInfo } from '../../runtime/runtime.ts';
import { reportedImages } from './status-images.ts';

const image = (id: string, sizeBytes: number, names: Partial<ImageInfo> = {}): ImageInfo => ({
  id,
  sizeBytes,
  tags: [`${id}:1`],
  digests: [],
  ...names,
});

test('reportedImages returns the largest images first, with digests before tags', () => {
  const digests = ['a@sha256:1'];
  expect(reportedImages([image('small', 1), image('a', 5), image('b', 5, { digests })])).toEqual([
    { names: ['a@sha256:1', 'b:1'], sizeBytes: 5 },
    { names: ['a:1'], sizeBytes: 5 },
    { names: ['small:1'], sizeBytes: 1 },
  ]);
});

test('reportedImages returns at most 50 images with at most five names each', () => {
  const tags = Array.from({ length: 7 }, (_, index) => `x:${index}`);
  const reported = reportedImages(Array.from({ length: 60 }, (_, index) => image(`${index}`, index, { tags })));
  expect(reported.map(({ sizeBytes }) => sizeBytes)).toEqual(Array.from({ length: 50 }, (_, index) => 59 - index));
  expect(reported.every(({ names }) => names?.length === 5)).toBe(true);
});
