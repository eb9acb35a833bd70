import type { Writable } from 'node:stream';

/** Resolves when a full stream accepts more data (at its next drain event) or is closed. Never rejects. */
export function drainedOrClosed(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      stream.off('drain', done).off('close', done);
      resolve();
    };
    if (stream.destroyed) resolve();
    else stream.on('drain', done).on('close', done);
  });
}
