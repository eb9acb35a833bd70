/** What `lifepod up` may be told of images: the pulls at once, and when unused ones are removed. Names as the kubelet's. */
import { DEFAULT_GARBAGE_POLICY, type GarbagePolicy } from '../node/images/garbage-collection.ts';
import { DEFAULT_MAX_PARALLEL_PULLS } from '../node/images/puller.ts';
import { UserError } from '../platform/files.ts';

/** As given on the command line, and as the data folder remembers them. */
export interface ImageOptions {
  maxParallelImagePulls?: number;
  /** Percent of the disk. */
  imageGcHighThreshold?: number;
  imageGcLowThreshold?: number;
  /** 2m, 90s */
  minimumImageTtlDuration?: string;
  /** The same; 0s: any. */
  imageMaximumGcAge?: string;
}

export type ImageSettings = Required<ImageOptions>;

export const DEFAULT_IMAGE_SETTINGS: ImageSettings = {
  maxParallelImagePulls: DEFAULT_MAX_PARALLEL_PULLS,
  imageGcHighThreshold: DEFAULT_GARBAGE_POLICY.highThreshold,
  imageGcLowThreshold: DEFAULT_GARBAGE_POLICY.lowThreshold,
  minimumImageTtlDuration: '2m',
  imageMaximumGcAge: '0s',
};

/** [flag, key, description] */
export const IMAGE_FLAGS: readonly [flag: string, key: keyof ImageSettings, description: string][] = [
  ['--max-parallel-image-pulls', 'maxParallelImagePulls', 'on the node; the others wait'],
  ['--image-gc-high-threshold', 'imageGcHighThreshold', 'percent of the disk from which unused images are removed'],
  ['--image-gc-low-threshold', 'imageGcLowThreshold', 'percent of the disk until which they are removed'],
  ['--minimum-image-ttl-duration', 'minimumImageTtlDuration', 'how long an unused image stays at least'],
  [
    '--image-maximum-gc-age',
    'imageMaximumGcAge',
    'how long an unused image stays at most; 0s: as long as there is room',
  ],
];

/** Throws a UserError where they do not fit. */
export function resolveImageSettings(options: ImageOptions, record: ImageOptions = {}): ImageSettings {
  const chosen = <K extends keyof ImageSettings>(key: K): ImageSettings[K] =>
    (options[key] ?? record[key] ?? DEFAULT_IMAGE_SETTINGS[key]) as ImageSettings[K];
  const settings: ImageSettings = {
    maxParallelImagePulls: chosen('maxParallelImagePulls'),
    imageGcHighThreshold: chosen('imageGcHighThreshold'),
    imageGcLowThreshold: chosen('imageGcLowThreshold'),
    minimumImageTtlDuration: chosen('minimumImageTtlDuration'),
    imageMaximumGcAge: chosen('imageMaximumGcAge'),
  };
  const { maxParallelImagePulls: pulls, imageGcHighThreshold: high, imageGcLowThreshold: low } = settings;
  if (!Number.isSafeInteger(pulls) || pulls < 1)
    throw new UserError(`--max-parallel-image-pulls ${pulls} is no number of pulls: give 1 or more`);
  if (![high, low].every((each) => Number.isInteger(each) && each >= 0 && each <= 100) || low >= high)
    throw new UserError(
      `--image-gc-low-threshold ${low} and --image-gc-high-threshold ${high} do not fit: give percents from 0 to 100, the low one below the high one`,
    );
  const { minAgeMillis, maxAgeMillis } = garbagePolicyOf(settings);
  if (maxAgeMillis !== 0 && maxAgeMillis <= minAgeMillis)
    throw new UserError(
      `--image-maximum-gc-age ${settings.imageMaximumGcAge} is no more than --minimum-image-ttl-duration ${settings.minimumImageTtlDuration}: give a longer one, or 0s`,
    );
  return settings;
}

const UNIT_MILLIS: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000 };

export const garbagePolicyOf = (settings: ImageSettings): GarbagePolicy => ({
  highThreshold: settings.imageGcHighThreshold,
  lowThreshold: settings.imageGcLowThreshold,
  minAgeMillis: parseMillis('--minimum-image-ttl-duration', settings.minimumImageTtlDuration),
  maxAgeMillis: parseMillis('--image-maximum-gc-age', settings.imageMaximumGcAge),
});

function parseMillis(option: string, text: string): number {
  const parts = /^(?:\d+[hms])+$/.test(text) ? [...text.matchAll(/(\d+)([hms])/g)] : [];
  if (parts.length === 0)
    throw new UserError(`${option} ${JSON.stringify(text)} is no duration: give one such as 2m, 90s or 1h30m`);
  return parts.reduce((sum, [, count, unit = '']) => sum + Number(count) * (UNIT_MILLIS[unit] ?? 0), 0);
}
