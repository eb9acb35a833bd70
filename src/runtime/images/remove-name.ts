/**
 * Removes one of several names of an image. In containerd, CRI's RemoveImage removes all names of an image, so the name is deleted in
 * containerd's own image service. CRI-O has no such service, and its RemoveImage removes only the name.
 */
import type { Timers } from '../../platform/platform.ts';
import { type Connection, delay, hasCode } from '../cri/connection.ts';
import { imageStatus, removeImage } from '../cri/images/image-service.ts';

const POLL_MILLIS = 5;
const SETTLED_WITHIN_MILLIS = 30_000;

/**
 * NotFound is success. Resolves when CRI no longer shows the name, or after 30 s. Polls, because CRI does not report when it has processed
 * the deletion.
 */
export async function removeImageName(
  connection: Connection,
  name: string,
  timers: Timers,
  signal: AbortSignal,
): Promise<void> {
  try {
    await connection.unary('containerd.services.images.v1.Images/Delete', { name, sync: true }, signal);
  } catch (error) {
    if (hasCode(error, 'Unimplemented')) return removeImage(connection, name, signal);
    if (!hasCode(error, 'NotFound')) throw error;
  }
  const deadline = timers.now() + SETTLED_WITHIN_MILLIS;
  while ((await imageStatus(connection, name, signal)) !== undefined && timers.now() < deadline)
    await delay(POLL_MILLIS, timers, signal);
}
