/**
 * emptyDir volumes: a folder of the Pod's, on disk, in memory or in huge pages, that everyone in the Pod may write.
 * Source: pkg/volume/emptydir of v1.33 (size of a memory volume, page size of huge pages, error texts).
 */
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

/** The mode first: a folder that has the group has all, also after a crash. Users may have changed the mode since. */
export async function giveToGroup(folder: string, fsGroup: number | undefined): Promise<void> {
  if (fsGroup === undefined || (await stat(folder)).gid === fsGroup) return;
  await chmod(folder, MODE | SET_GID);
  await chown(folder, -1, fsGroup);
}

/**
 * A folder with mode 0777 whatever the umask; one that exists is kept as it is. It gets its name last, so that a crash
 * leaves none with another mode.
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

/** A tmpfs at the folder, unless one is there; 0 bytes: half of the memory, the kernel's default. */
async function setUpMemoryFolder(folder: string, bytes: number, signal: AbortSignal): Promise<void> {
  await mkdir(folder, { recursive: true });
  if (await isMountPoint(folder)) return;
  await mountTmpfs(folder, ['mode=0777', ...(bytes === 0 ? [] : [`size=${bytes}`])], signal);
}

const bytesOf = (text: string | undefined): number => Number(quantityValue(parseQuantity(text ?? '0') ?? zeroQuantity));

/** The smallest of the volume's limit, the Pod's, and what the node has for Pods; 0: none is known. */
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

/** Of the medium HugePages-2Mi its own size; of HugePages the one that the Pod's containers request. Throws where there is none. */
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
