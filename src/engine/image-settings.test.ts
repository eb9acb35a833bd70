import { expect, test } from 'vitest';
import { DEFAULT_IMAGE_SETTINGS, garbagePolicyOf, type ImageOptions, resolveImageSettings } from './image-settings.ts';

test('given image options override the recorded ones, which override the defaults', () => {
  const settings = resolveImageSettings(
    { maxParallelImagePulls: 2 },
    { maxParallelImagePulls: 3, minimumImageTtlDuration: '1h30m' },
  );
  expect(settings).toEqual({ ...DEFAULT_IMAGE_SETTINGS, maxParallelImagePulls: 2, minimumImageTtlDuration: '1h30m' });
  expect(garbagePolicyOf(settings)).toEqual({
    highThreshold: 85,
    lowThreshold: 80,
    minAgeMillis: 5_400_000,
    maxAgeMillis: 0,
  });
});

test.each<[ImageOptions, RegExp]>([
  [{ maxParallelImagePulls: 0 }, /^--max-parallel-image-pulls 0 is not a valid number of pulls: /],
  [{ imageGcHighThreshold: 80 }, /^--image-gc-low-threshold 80 and --image-gc-high-threshold 80 are not valid: /],
  [{ imageGcHighThreshold: 101 }, /are not valid/],
  [{ imageGcLowThreshold: Number.NaN }, /are not valid/],
  [{ minimumImageTtlDuration: 'soon' }, /^--minimum-image-ttl-duration "soon" is not a valid duration: /],
  [{ imageMaximumGcAge: '7d' }, /^--image-maximum-gc-age "7d" is not a valid duration: /],
  [{ imageMaximumGcAge: '2m' }, /^--image-maximum-gc-age 2m is not longer than --minimum-image-ttl-duration 2m: /],
  [{ minimumImageTtlDuration: '' }, /is not a valid duration/],
])('the image options %j are refused', (options, why) => {
  expect(() => resolveImageSettings(options)).toThrow(why);
});
