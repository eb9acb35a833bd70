/**
 * Gives a volume to the Pod's fsGroup: all files and folders in the volume get this group, and the group can read and write them. New
 * entries of the folders inherit the group.
 * Source: "Configure volume permission and ownership change policy for Pods" and pkg/volume/volume_linux.go of v1.33.
 */
import { constants } from 'node:fs';
import { chmod, chown, type FileHandle, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { PodSecurityContext } from '../../api/generated/types.ts';

const READ_WRITE = 0o660;
const ENTER = 0o110;
const SET_GID = 0o2000;
/** Linux's O_PATH, which Node.js does not define. */
const O_PATH = 0o10000000;

/**
 * Gives the folder and its content, or the file `folder`, to the group. With the policy OnRootMismatch, changes nothing if the folder
 * itself already has the expected group and at least the expected mode bits. Without an fsGroup, does nothing.
 */
export async function setOwnership(
  folder: string,
  { fsGroup, fsGroupChangePolicy }: Pick<PodSecurityContext, 'fsGroup' | 'fsGroupChangePolicy'>,
  signal: AbortSignal,
): Promise<void> {
  if (fsGroup === undefined) return;
  const root = await open(folder, O_PATH | constants.O_NOFOLLOW);
  try {
    if (fsGroupChangePolicy === 'OnRootMismatch' && (await isOwned(root, fsGroup))) return;
    await own(root, fsGroup, signal);
  } finally {
    await root.close();
  }
}

async function isOwned(entry: FileHandle, fsGroup: number): Promise<boolean> {
  const { gid, mode } = await entry.stat();
  const wanted = READ_WRITE | ENTER | SET_GID;
  return gid === fsGroup && (mode & wanted) === wanted;
}

/**
 * Uses handles, since a process may replace a folder of the volume with a link at any moment. Changes the content of a folder before the
 * folder itself, so that an interruption cannot leave a changed folder with unchanged content; the policy OnRootMismatch relies on this
 * order.
 */
async function own(entry: FileHandle, fsGroup: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const stat = await entry.stat();
  if (stat.isSymbolicLink()) return;
  const path = `/proc/self/fd/${entry.fd}`;
  if (stat.isDirectory()) {
    for (const name of await readdir(path)) {
      const child = await open(join(path, name), O_PATH | constants.O_NOFOLLOW).catch(ignoreMissing);
      if (child === undefined) continue;
      try {
        await own(child, fsGroup, signal);
      } finally {
        await child.close();
      }
    }
  }
  await chown(path, stat.uid, fsGroup);
  await chmod(path, (stat.mode & 0o7777) | READ_WRITE | (stat.isDirectory() ? ENTER | SET_GID : 0));
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}
