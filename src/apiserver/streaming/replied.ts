/** When the connection to the container runtime may be closed. */
import type { Duplex } from 'node:stream';
import type { Timers } from '../../platform/platform.ts';

/** A runtime that has not replied to a stream by then is taken not to do so any more. */
const REPLY_MILLIS = 5_000;

/**
 * Calls `close` when `replied` has resolved: the runtime has replied to every stream that was opened on the connection, or
 * has had 5 s to do so. containerd's SPDY library waits for ever to close a stream to which it could not send its reply,
 * and containerd does not report the end of a container while it waits to close a stream that is attached to it.
 */
export function closeAfterReplies(runtime: Duplex, replied: Promise<unknown>, timers: Timers, close: () => void): void {
  const late = timers.at(timers.now() + REPLY_MILLIS, () => runtime.destroy());
  runtime.once('close', () => late.cancel());
  replied.then(() => {
    late.cancel();
    close();
  });
}
