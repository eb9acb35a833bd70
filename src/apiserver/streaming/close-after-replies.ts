import type { Duplex } from 'node:stream';
import type { Timers } from '../../platform/platform.ts';

const REPLY_MILLIS = 5_000;

/**
 * Calls `close` when the runtime has replied to every stream of the connection. Destroys the connection if that takes longer than
 * REPLY_MILLIS.
 *
 * containerd's SPDY library waits forever to close a stream whose reply it could not send. Meanwhile, containerd does not report the exit
 * of a container to which the stream is attached.
 */
export function closeAfterReplies(runtime: Duplex, replied: Promise<unknown>, timers: Timers, close: () => void): void {
  const late = timers.at(timers.now() + REPLY_MILLIS, () => runtime.destroy());
  runtime.once('close', () => late.cancel());
  replied.then(() => {
    late.cancel();
    close();
  });
}
