/**
 * Removes images, or one of several names of an image. Other clients of containerd, and earlier versions of lifepod, assign short names
 * such as web:1. CRI shows them in complete form, but cannot find them, and its RemoveImage does not delete them.
 */
import type { Timers } from '../../platform/platform.ts';
import { type Connection, delay, hasCode } from '../cri/connection.ts';
import { imageStatus, listImages, removeImage } from '../cri/images/image-service.ts';
import { IMAGES, listNames } from './failed-import.ts';
import { storedName } from './references.ts';

/** CRI also assigns the ID of each image as a name. */
const IMAGE_ID = /^sha256:[0-9a-f]{64}$/;
const POLL_MILLIS = 5;
const SETTLED_WITHIN_MILLIS = 30_000;

/** Removes the image with all its names. NotFound is success. */
export async function removeWholeImage(
  connection: Connection,
  id: string,
  timers: Timers,
  signal: AbortSignal,
): Promise<void> {
  const { tags = [] } = (await imageStatus(connection, id, signal)) ?? {};
  await deleteShortNames(connection, tags, timers, signal).catch((error: unknown) => {
    if (!hasCode(error, 'Unimplemented')) throw error;
  });
  await removeImage(connection, id, signal);
}

/**
 * Removes one of several names of an image. In containerd, CRI's RemoveImage removes all names of an image, so the name is deleted in
 * containerd's own image service. CRI-O has no such service, and its RemoveImage removes only the name. NotFound is success.
 */
export async function removeImageName(
  connection: Connection,
  name: string,
  timers: Timers,
  signal: AbortSignal,
): Promise<void> {
  try {
    await deleteShortNames(connection, [name], timers, signal);
    await deleteName(connection, name, signal);
  } catch (error) {
    if (hasCode(error, 'Unimplemented')) return removeImage(connection, name, signal);
    throw error;
  }
  await untilShown(connection, { name, shown: false }, timers, signal);
}

/**
 * Deletes the short forms of the tags, or of all tags that CRI shows. CRI would continue to show the image if the complete name did not
 * exist, so it is assigned first.
 */
export async function deleteShortNames(
  connection: Connection,
  tags: readonly string[] | 'all',
  timers: Timers,
  signal: AbortSignal,
): Promise<void> {
  const names = await listNames(connection, signal);
  const shown = new Set((await listImages(connection, signal)).flatMap((image) => image.tags));
  for (const { name, target } of names) {
    const complete = storedName(name);
    if (
      IMAGE_ID.test(name) ||
      name === complete ||
      !shown.has(complete) ||
      (tags !== 'all' && !tags.includes(complete))
    )
      continue;
    await connection
      .unary(`${IMAGES}/Create`, { image: { name: complete, target } }, signal)
      .catch((error: unknown) => {
        if (!hasCode(error, 'AlreadyExists')) throw error;
      });
    await untilShown(connection, { name: complete, shown: true }, timers, signal);
    await deleteName(connection, name, signal);
  }
}

/** NotFound is success: another client may have deleted the name. */
async function deleteName(connection: Connection, name: string, signal: AbortSignal): Promise<void> {
  await connection.unary(`${IMAGES}/Delete`, { name, sync: true }, signal).catch((error: unknown) => {
    if (!hasCode(error, 'NotFound')) throw error;
  });
}

/**
 * Resolves when CRI shows the name or no longer shows it, or after 30 s. Polls, because CRI does not report when it has processed a name.
 */
async function untilShown(
  connection: Connection,
  { name, shown }: { name: string; shown: boolean },
  timers: Timers,
  signal: AbortSignal,
): Promise<void> {
  const deadline = timers.now() + SETTLED_WITHIN_MILLIS;
  const isShown = async (): Promise<boolean> => (await imageStatus(connection, name, signal)) !== undefined;
  while ((await isShown()) !== shown && timers.now() < deadline) await delay(POLL_MILLIS, timers, signal);
}
