/** Source: "Volumes", image, of the v1.33 documentation; the kubelet's image manager (Events and reasons). */

import { mkdir, readdir } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import type { Pod, Volume } from '../../api/generated/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import { formatDuration } from '../../machinery/time.ts';
import { runCommandOk } from '../../platform/processes.ts';
import { type ImageInfo, OutcomeUnknownError, type RuntimeMount } from '../../runtime/runtime.ts';
import { invalidNameMessage } from '../images/failures.ts';
import { bindMount, isMountPoint, remountReadOnly } from './mounts.ts';
import { VolumeError } from './volume-error.ts';

export interface VolumeImages {
  status(reference: string, signal: AbortSignal): Promise<ImageInfo | undefined>;
  /** If the pull fails, rejects with the messages of the runtime. `millis`: the duration of the pull without the wait for other pulls. */
  pull(pod: Pod, reference: string, signal: AbortSignal): Promise<{ info: ImageInfo; millis: number }>;
  /**
   * Returns the mounts that provide the image's files, and keeps the files until release() is called with the same key. Undefined if the
   * runtime does not support this.
   */
  mounts: ((imageId: string, key: string, signal: AbortSignal) => Promise<RuntimeMount[]>) | undefined;
  /** Undefined if the runtime does not support this. */
  release: ((key: string, signal: AbortSignal) => Promise<void>) | undefined;
  event(pod: Pod, type: 'Normal' | 'Warning', reason: string, message: string): void;
}

export const IMAGE_FOLDER = 'kubernetes.io~image';

const keyOf = (podUid: string, volumeName: string): string => `lifepod-volume/${podUid}/${volumeName}`;

/**
 * If an image is mounted already, the Pod keeps it, even if the tag has moved since. Rejects if the runtime cannot provide the files of
 * images, or if the image cannot be pulled or mounted.
 */
export async function setUpImage(
  images: VolumeImages,
  pod: Pod,
  volume: Volume,
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  if (images.mounts === undefined) {
    throw new Error('image volumes need containerd: the container runtime cannot provide the files of an image');
  }
  await mkdir(folder, { recursive: true, mode: 0o750 });
  // An engine may have died after a bind mount and before it made the mount read-only.
  if (await isMountPoint(folder)) return remountReadOnly(folder, signal);
  const { reference = '', pullPolicy = 'IfNotPresent' } = volume.image ?? {};
  const { id } = await presentImage(images, pod, volume.name, reference, pullPolicy, signal);
  const mounts = await images.mounts(id, keyOf(uidOf(pod), volume.name), signal);
  for (const mount of mounts) await mountReadOnly(mount, folder, signal);
}

async function presentImage(
  images: VolumeImages,
  pod: Pod,
  volumeName: string,
  reference: string,
  pullPolicy: string,
  signal: AbortSignal,
): Promise<ImageInfo> {
  const invalid = invalidNameMessage(reference);
  if (invalid !== undefined) {
    images.event(pod, 'Warning', 'InspectFailed', invalid);
    throw new VolumeError(volumeName, invalid, 'InvalidImageName');
  }
  const present = pullPolicy === 'Always' ? undefined : await images.status(reference, signal);
  if (present !== undefined) {
    images.event(pod, 'Normal', 'Pulled', `Container image "${reference}" already present on machine`);
    return present;
  }
  if (pullPolicy === 'Never') {
    const message = `Container image "${reference}" is not present with pull policy of Never`;
    images.event(pod, 'Warning', 'ErrImageNeverPull', message);
    throw new VolumeError(volumeName, message, 'ErrImageNeverPull');
  }
  images.event(pod, 'Normal', 'Pulling', `Pulling image "${reference}"`);
  const began = performance.now();
  const { info, millis } = await images.pull(pod, reference, signal).catch((error: Error) => {
    signal.throwIfAborted();
    if (error instanceof OutcomeUnknownError) throw error;
    images.event(pod, 'Warning', 'Failed', `Failed to pull image "${reference}": ${error.message}`);
    throw new VolumeError(volumeName, error.message, 'ErrImagePull', reference);
  });
  const [alone, all] = [millis, performance.now() - began].map((each) => formatDuration(Math.trunc(each)));
  images.event(
    pod,
    'Normal',
    'Pulled',
    `Successfully pulled image "${reference}" in ${alone} (${all} including waiting). Image size: ${info.sizeBytes} bytes.`,
  );
  return info;
}

async function mountReadOnly(
  { type, source, options }: RuntimeMount,
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  if (type === 'bind') {
    await bindMount(source, folder, signal);
    return remountReadOnly(folder, signal);
  }
  const { cwd, options: short } = shortLayers(options);
  await runCommandOk('mount', ['-t', type, '-o', ['ro', ...short].join(','), source, folder], { signal, cwd });
}

/** The kernel accepts one page of mount options, including the terminating zero byte. */
const MAX_OPTION_BYTES = 4095;
const LAYERS = 'lowerdir=';

/**
 * Makes the folders of an image's layers relative to a common folder `cwd`, the working directory for mount(8), because the absolute paths
 * of about 40 layers exceed the kernel's limit. Throws if the relative paths exceed the limit as well.
 */
export function shortLayers(options: readonly string[]): { cwd: string; options: string[] } {
  const layers =
    options
      .find((option) => option.startsWith(LAYERS))
      ?.slice(LAYERS.length)
      .split(':') ?? [];
  let cwd = dirname(layers[0] ?? '/');
  while (!layers.every((layer) => layer.startsWith(join(cwd, '/')))) cwd = dirname(cwd);
  const short = `${LAYERS}${layers.map((layer) => relative(cwd, layer)).join(':')}`;
  if (short.length > MAX_OPTION_BYTES)
    throw new Error(`the image has more layers than can be mounted: ${layers.length}`);
  return { cwd, options: options.map((option) => (option.startsWith(LAYERS) ? short : option)) };
}

/** Releases the runtime's snapshots of the Pod's image volumes. The caller must have unmounted the volumes. */
export async function releaseImages(
  images: VolumeImages | undefined,
  podDirectory: string,
  podUid: string,
  signal: AbortSignal,
): Promise<void> {
  const names = await readdir(join(podDirectory, 'volumes', IMAGE_FOLDER)).catch(() => []);
  for (const name of names) await images?.release?.(keyOf(podUid, name), signal);
}
