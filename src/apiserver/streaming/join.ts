/** Joins a client's connection and the runtime's: every byte goes through as it is, held up by whoever reads slower. */
import type { Duplex } from 'node:stream';
import type { Timers } from '../../platform/platform.ts';

/** How long a side whose other side has ended may take to end as well. */
const LINGER_MILLIS = 1_000;

/**
 * Resolves when both sides are closed; never rejects. What one side sent before it ended still reaches the other. `signal`
 * cuts the runtime's side; the client then gets what is under way, and the end.
 */
export function join(client: Duplex, runtime: Duplex, timers: Timers, signal: AbortSignal): Promise<void> {
  const closeSoon = (side: Duplex): void => {
    const cut = timers.at(timers.now() + LINGER_MILLIS, () => side.destroy());
    side.once('close', () => cut.cancel());
  };
  // The client may still be sending: to close with unread bytes resets the connection, and what it has not read is lost.
  const endClient = (): void => {
    client.unpipe(runtime);
    client.resume();
    if (client.destroyed) return;
    client.once('finish', () => closeSoon(client));
    client.end();
  };
  const endRuntime = (): void => {
    if (runtime.destroyed) return;
    runtime.end();
    closeSoon(runtime);
  };
  const cut = (): void => {
    runtime.destroy();
    closeSoon(client);
  };

  return new Promise((resolve) => {
    let open = 2;
    const closed = (): void => {
      open -= 1;
      if (open > 0) return;
      signal.removeEventListener('abort', cut);
      resolve();
    };
    const follow = (side: Duplex, ended: () => void): void => {
      const once = callOnce(ended);
      const close = (): void => {
        once();
        closed();
      };
      side.on('error', () => undefined);
      side.once('end', once);
      if (side.closed) close();
      else side.once('close', close);
    };
    follow(client, endRuntime);
    follow(runtime, endClient);
    runtime.pipe(client, { end: false });
    client.pipe(runtime, { end: false });
    if (signal.aborted) cut();
    else signal.addEventListener('abort', cut, { once: true });
  });
}

function callOnce(call: () => void): () => void {
  let called = false;
  return () => {
    if (called) return;
    called = true;
    call();
  };
}
