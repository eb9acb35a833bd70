/** The end of a Pod's volumes: what is mounted ends first, then go the files. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { removeTree } from '../../platform/remove-tree.ts';
import { mountsUnder, unmountUnder } from '../mounts.ts';
import { releaseImages, type VolumeImages } from './image.ts';
import { EMPTY_DIRS } from './set-up.ts';

/** `folder`: the Pod's; `parts` of it go, '.' for all of it. Rejects where something in it is still mounted. */
export async function removeParts(
  { folder, podUid, images }: { folder: string; podUid: string; images: VolumeImages | undefined },
  parts: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  await unmountUnder(folder, signal);
  await releaseImages(images, folder, podUid, signal);
  const left = await mountsUnder(folder);
  if (left.length > 0) throw new Error(`cannot remove ${folder}: ${left[0]} is still mounted`);
  // Nothing else that is left there could containers change.
  await removeTree(join(folder, EMPTY_DIRS));
  for (const part of parts) await rm(join(folder, part), { recursive: true, force: true });
}
