/** Delays closing the connection to the container runtime. */
import type { Duplex } from 'node:stream';
import type { Timers } from '../../platform/platform.ts';

/** How long the runtime may take to reply before the connection is destroyed. */
const REPLY_MILLIS = 5_000;

/**
 * Calls `close` when `replied` has resolved, that is, when the runtime has replied to every stream that was opened on the
 * connection. If that takes longer than 5 s, destroys the connection instead.
 *
 * containerd's SPDY library waits forever to close a stream whose reply it could not send, and containerd does not report a
 * container's exit while it waits to close a stream that is attached to the container.
 */
export function closeAfterReplies(runtime: Duplex, replied: Promise<unknown>, timers: Timers, close: () => void): void {
  const late = timers.at(timers.now() + REPLY_MILLIS, () => runtime.destroy());
  runtime.once('close', () => late.cancel());
  replied.then(() => {
    late.cancel();
    close();
  });
}
