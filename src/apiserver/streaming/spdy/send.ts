import type { Writable } from 'node:stream';
import { dataHead, MAX_DATA_BYTES } from './frames.ts';

export function send(side: Writable, frame: Uint8Array): void {
  if (side.writable) side.write(frame);
}

/** `fin` ends the stream with the last frame. */
export function sendData(side: Writable, streamId: number, bytes: Uint8Array, fin: boolean): void {
  if (bytes.length === 0 && fin) send(side, dataHead(streamId, 0, true));
  for (let from = 0; from < bytes.length; from += MAX_DATA_BYTES) {
    const piece = bytes.subarray(from, from + MAX_DATA_BYTES);
    send(side, dataHead(streamId, piece.length, fin && from + piece.length === bytes.length));
    send(side, piece);
  }
}

/**
 * Sends the frames that `work` writes to this side in one write, even if `work` fails: a write to a socket takes much longer than the rest
 * of the work on a small frame.
 */
export async function inOneWrite(side: Writable, work: () => Promise<void>): Promise<void> {
  side.cork();
  try {
    await work();
  } finally {
    side.uncork();
  }
}

/** Sends the waiting frames before `work`, which may take long. Call it only within inOneWrite(). */
export async function afterFlush(side: Writable, work: () => Promise<void>): Promise<void> {
  side.uncork();
  try {
    await work();
  } finally {
    side.cork();
  }
}
