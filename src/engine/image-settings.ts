/** Defines and checks the options of `lifepod up` for parallel pulls and image garbage, which are named like settings of the kubelet. */
import { parseDuration } from '../machinery/time.ts';
import { DEFAULT_GARBAGE_POLICY, type GarbagePolicy } from '../node/images/garbage-policy.ts';
import { DEFAULT_MAX_PARALLEL_PULLS } from '../node/images/puller.ts';
import { UserError } from '../platform/files.ts';

/** As given on the command line, and as recorded in the engine record. */
export interface ImageOptions {
  maxParallelImagePulls?: number;
  /** This threshold and the next are percentages of the size of the image disk. */
  imageGcHighThreshold?: number;
  imageGcLowThreshold?: number;
  /** A duration such as 2m or 90s. */
  minimumImageTtlDuration?: string;
  /** A duration such as 168h; 0s means no limit. */
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

export const IMAGE_FLAGS: readonly [flag: string, key: keyof ImageSettings, description: string][] = [
  ['--max-parallel-image-pulls', 'maxParallelImagePulls', 'maximum number of image pulls at the same time'],
  ['--image-gc-high-threshold', 'imageGcHighThreshold', 'disk usage in percent above which unused images are removed'],
  ['--image-gc-low-threshold', 'imageGcLowThreshold', 'disk usage in percent down to which unused images are removed'],
  ['--minimum-image-ttl-duration', 'minimumImageTtlDuration', 'minimum age of an unused image before it is removed'],
  ['--image-maximum-gc-age', 'imageMaximumGcAge', 'age at which an unused image is removed; 0s disables this'],
];

/** Returns each value from `options`, else from `record`, else the default. Throws a UserError if a value is invalid. */
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
    throw new UserError(`--max-parallel-image-pulls ${pulls} is not a valid number of pulls: give 1 or more`);
  if (![high, low].every((each) => Number.isInteger(each) && each >= 0 && each <= 100) || low >= high)
    throw new UserError(
      `--image-gc-low-threshold ${low} and --image-gc-high-threshold ${high} are not valid: give percentages from 0 to 100, with the low one below the high one`,
    );
  const { minAgeMillis, maxAgeMillis } = garbagePolicyOf(settings);
  if (maxAgeMillis !== 0 && maxAgeMillis <= minAgeMillis)
    throw new UserError(
      `--image-maximum-gc-age ${settings.imageMaximumGcAge} is not longer than --minimum-image-ttl-duration ${settings.minimumImageTtlDuration}: give a longer duration, or 0s`,
    );
  return settings;
}

export const garbagePolicyOf = (settings: ImageSettings): GarbagePolicy => ({
  highThreshold: settings.imageGcHighThreshold,
  lowThreshold: settings.imageGcLowThreshold,
  minAgeMillis: parseMillis('--minimum-image-ttl-duration', settings.minimumImageTtlDuration),
  maxAgeMillis: parseMillis('--image-maximum-gc-age', settings.imageMaximumGcAge),
});

function parseMillis(option: string, text: string): number {
  const millis = parseDuration(text);
  if (millis === undefined || millis < 0)
    throw new UserError(`${option} ${JSON.stringify(text)} is not a valid duration: give one such as 2m, 90s or 1h30m`);
  return millis;
}
