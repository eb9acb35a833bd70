/** Handles bytes in pieces: a WebSocket message that carries a byte stream has up to 32 MiB. */
import type { Writable } from 'node:stream';
import { drainedOrClosed } from '../http/wait-for-drain.ts';

/** As much as a read of a socket returns at a time. */
const PIECE_BYTES = 64 * 1024;

/** Calls `take` for each piece once it has handled the previous one and the stream `to`, to which it writes, accepts more. */
export const inPieces =
  (take: (bytes: Uint8Array) => Promise<void>, to: Writable) =>
  async (bytes: Uint8Array): Promise<void> => {
    for (let from = 0; from < bytes.length; from += PIECE_BYTES) {
      if (from > 0 && to.writableNeedDrain) await drainedOrClosed(to);
      await take(bytes.subarray(from, from + PIECE_BYTES));
    }
  };
