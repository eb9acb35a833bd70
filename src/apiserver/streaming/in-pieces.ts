/** Takes bytes piece by piece: a message of a WebSocket that carries a stream of bytes has up to 32 MiB. */
import type { Writable } from 'node:stream';
import { drainedOrClosed } from './drained.ts';

/** As much as a connection gives at a time. */
const PIECE_BYTES = 64 * 1024;

/** Calls `take` for each piece when it has taken the one before, and `to`, to which it writes, wants more. */
export const inPieces =
  (take: (bytes: Uint8Array) => Promise<void>, to: Writable) =>
  async (bytes: Uint8Array): Promise<void> => {
    for (let from = 0; from < bytes.length; from += PIECE_BYTES) {
      if (from > 0 && to.writableNeedDrain) await drainedOrClosed(to);
      await take(bytes.subarray(from, from + PIECE_BYTES));
    }
  };
