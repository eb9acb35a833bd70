/** Handles bytes in pieces, because a WebSocket message that carries a byte stream may have up to 32 MiB. */
import type { Writable } from 'node:stream';
import { drainedOrClosed } from '../http/wait-for-drain.ts';

/** The maximum that one read of a socket returns. */
const PIECE_BYTES = 64 * 1024;

/**
 * Returns a function that passes bytes to `take` in pieces. `to`: the stream to which `take` writes. The next piece waits until `take` has
 * handled the previous one and `to` accepts more.
 */
export const inPieces =
  (take: (bytes: Uint8Array) => Promise<void>, to: Writable) =>
  async (bytes: Uint8Array): Promise<void> => {
    for (let from = 0; from < bytes.length; from += PIECE_BYTES) {
      if (from > 0 && to.writableNeedDrain) await drainedOrClosed(to);
      await take(bytes.subarray(from, from + PIECE_BYTES));
    }
  };
