import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { removeTree } from '../../platform/remove-tree.ts';
import { releaseImages, type VolumeImages } from './image.ts';
import { mountsUnder, unmountUnder } from './mounts.ts';
import { EMPTY_DIRS, type PodDirectories } from './set-up.ts';

/**
 * Unmounts everything in the Pod's folders and releases the files of its image volumes, then removes the Pod's emptyDir volumes, `parts` of
 * the folder on disk ('' is the whole folder) and the whole folder in memory. Rejects if something in one of the folders is still mounted.
 */
export async function removeParts(
  { disk, memory, podUid, images }: PodDirectories & { podUid: string; images: VolumeImages | undefined },
  parts: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  for (const each of [disk, memory]) await unmountUnder(each, signal);
  await releaseImages(images, disk, podUid, signal);
  const left = await mountsUnder(disk, memory);
  if (left.length > 0) throw new Error(`cannot remove ${disk}: ${left[0]} is still mounted`);
  // removeTree() is safe against concurrent changes by containers. Containers cannot create or replace files in the other folders, so rm()
  // suffices there.
  await removeTree(join(disk, EMPTY_DIRS));
  await rm(memory, { recursive: true, force: true });
  for (const part of parts) await rm(join(disk, part), { recursive: true, force: true });
}
