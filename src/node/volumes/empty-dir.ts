/** Source: pkg/volume/emptydir of v1.33 (size of a memory volume, page size of huge pages, error texts). */
import { chmod, chown, lstat, mkdir, rename, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { containersOf } from '../../api/core/v1/pod/containers.ts';
import type { EmptyDirVolumeSource, Pod } from '../../api/generated/types.ts';
import { parseQuantity, quantityValue, zeroQuantity } from '../../machinery/quantity.ts';
import { podLimits } from '../resources/container-resources.ts';
import { isMountPoint, mountHugetlbfs, mountTmpfs } from './mounts.ts';

const MODE = 0o777;
const SET_GID = 0o2000;
const HUGE_PAGES = 'HugePages';

export async function setUpEmptyDir(
  folder: string,
  source: EmptyDirVolumeSource,
  { pod, allocatable }: { pod: Pod; allocatable: Readonly<Record<string, string>> },
  signal: AbortSignal,
): Promise<void> {
  const medium = source.medium ?? '';
  if (medium === 'Memory') await setUpMemoryFolder(folder, memoryBytes(source, pod, allocatable), signal);
  else if (medium === HUGE_PAGES || medium.startsWith(`${HUGE_PAGES}-`))
    await setUpHugePages(folder, medium, pod, signal);
  else if (medium === '') await makeFolder(folder);
  else throw new Error(`unknown storage medium ${JSON.stringify(medium)}`);
  await giveToGroup(folder, pod.spec?.securityContext?.fsGroup);
}

/**
 * Gives the folder to the group `fsGroup`, with mode 2777, unless the folder has this group already. The mode is set before the group, so
 * that a crash cannot leave a folder that has the group without the mode. Later calls do not set the mode again, since the Pod may have
 * changed it.
 */
export async function giveToGroup(folder: string, fsGroup: number | undefined): Promise<void> {
  if (fsGroup === undefined || (await stat(folder)).gid === fsGroup) return;
  await chmod(folder, MODE | SET_GID);
  await chown(folder, -1, fsGroup);
}

/**
 * Creates a folder with mode 0777 regardless of the umask. Does nothing if the folder exists. The folder gets its final name last, so that
 * a crash never leaves a folder of that name with another mode.
 */
export async function makeFolder(folder: string): Promise<void> {
  if (await exists(folder)) return;
  const unfinished = join(dirname(folder), `.${basename(folder)}`);
  await mkdir(unfinished, { recursive: true });
  await chmod(unfinished, MODE);
  await rename(unfinished, folder);
}

const exists = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
      return false;
    },
  );

/** `bytes`: 0 for the kernel's default size, half of the machine's memory. */
async function setUpMemoryFolder(folder: string, bytes: number, signal: AbortSignal): Promise<void> {
  await mkdir(folder, { recursive: true });
  if (await isMountPoint(folder)) return;
  await mountTmpfs(folder, ['mode=0777', ...(bytes === 0 ? [] : [`size=${bytes}`])], signal);
}

const bytesOf = (text: string | undefined): number => Number(quantityValue(parseQuantity(text ?? '0') ?? zeroQuantity));

/** Returns the size of a memory volume in bytes: the smallest known limit; 0 if none is known. */
export function memoryBytes(
  { sizeLimit }: EmptyDirVolumeSource,
  pod: Pod,
  allocatable: Readonly<Record<string, string>>,
): number {
  const limits = [bytesOf(sizeLimit), podLimits(pod, [], 0).memoryBytes ?? 0, bytesOf(allocatable['memory'])];
  const known = limits.filter((limit) => limit > 0);
  return known.length === 0 ? 0 : Math.min(...known);
}

async function setUpHugePages(folder: string, medium: string, pod: Pod, signal: AbortSignal): Promise<void> {
  await mkdir(folder, { recursive: true });
  if (!(await isMountPoint(folder))) await mountHugetlbfs(folder, hugePageBytes(medium, pod), signal);
}

/**
 * Returns the page size of the medium in bytes. Throws if the containers do not request this size, and for the medium HugePages if they
 * request no size or several sizes.
 */
export function hugePageBytes(medium: string, pod: Pod): number {
  const requested = new Set(
    containersOf(pod)
      .flatMap(({ resources }) => Object.keys(resources?.requests ?? {}))
      .filter((name) => name.startsWith('hugepages-'))
      .map((name) => bytesOf(name.slice('hugepages-'.length))),
  );
  if (medium === HUGE_PAGES && requested.size > 1)
    throw new Error(`medium: ${medium} can't be used if container requests multiple huge page sizes`);
  const wanted = medium === HUGE_PAGES ? [...requested][0] : bytesOf(medium.slice(HUGE_PAGES.length + 1));
  if (wanted === undefined || !requested.has(wanted))
    throw new Error(`medium ${medium}: hugePages storage requested, but there is no resource request for huge pages`);
  return wanted;
}
