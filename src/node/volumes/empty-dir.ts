/**
 * emptyDir volumes: a folder of the Pod's, on disk or in memory, that everyone in the Pod may write.
 * Source: pkg/volume/emptydir of v1.33 (modes, size of a memory volume).
 */
import { chmod, chown, mkdir, stat } from 'node:fs/promises';
import type { EmptyDirVolumeSource, Pod } from '../../api/generated/types.ts';
import { parseQuantity, quantityValue } from '../../machinery/quantity.ts';
import { mountsUnder, mountTmpfs } from '../mounts.ts';

const MODE = 0o777;
const SET_GID = 0o2000;

export async function setUpEmptyDir(
  folder: string,
  source: EmptyDirVolumeSource,
  pod: Pod,
  signal: AbortSignal,
): Promise<void> {
  const medium = source.medium ?? '';
  if (medium !== '' && medium !== 'Memory')
    throw new Error(`emptyDir medium ${JSON.stringify(medium)} is not supported`);
  if (medium === 'Memory') await setUpMemoryFolder(folder, memoryBytes(source, pod), signal);
  else await makeFolder(folder);
  const fsGroup = pod.spec?.securityContext?.fsGroup;
  if (fsGroup !== undefined && (await stat(folder)).gid !== fsGroup) {
    await chown(folder, -1, fsGroup);
    await chmod(folder, MODE | SET_GID);
  }
}

/** A folder with mode 0777 whatever the umask; one that exists is kept as it is. */
export async function makeFolder(folder: string): Promise<void> {
  if ((await mkdir(folder, { recursive: true })) !== undefined) await chmod(folder, MODE);
}

/** A tmpfs at the folder, unless one is there; 0 bytes: half of the memory, the kernel's default. */
export async function setUpMemoryFolder(folder: string, bytes: number, signal: AbortSignal): Promise<void> {
  await mkdir(folder, { recursive: true });
  if ((await mountsUnder(folder)).includes(folder)) return;
  await mountTmpfs(folder, ['mode=0777', ...(bytes === 0 ? [] : [`size=${bytes}`])], signal);
}

/** The smaller of the volume's limit and the sum of the containers' memory limits, where all have one. */
function memoryBytes(source: EmptyDirVolumeSource, pod: Pod): number {
  const bytes = (text: string | undefined): number => {
    const quantity = parseQuantity(text ?? '0');
    return quantity === undefined ? 0 : Number(quantityValue(quantity));
  };
  const limits = (pod.spec?.containers ?? []).map(({ resources }) => bytes(resources?.limits?.['memory']));
  const ofPod = limits.includes(0) ? 0 : limits.reduce((sum, limit) => sum + limit, 0);
  const ofVolume = bytes(source.sizeLimit);
  return ofVolume === 0 || ofPod === 0 ? ofVolume || ofPod : Math.min(ofVolume, ofPod);
}
