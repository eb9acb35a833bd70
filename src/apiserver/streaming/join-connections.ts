import type { Duplex } from 'node:stream';
import type { Timers } from '../../platform/platform.ts';
import { drainedOrClosed } from '../http/wait-for-drain.ts';
import { closeAfterReplies } from './close-after-replies.ts';

/** How long a side may take to close after the other side has ended. */
const LINGER_MILLIS = 1_000;

export interface Passing {
  /** Rejects if the client breaks the protocol; further data of the client is then discarded. */
  fromClient(chunk: Uint8Array): Promise<void> | void;
  fromRuntime(chunk: Uint8Array): Promise<void> | void;
  /** Resolves when the runtime has replied to every opened stream (see closeAfterReplies()). */
  replied(): Promise<unknown>;
  failed(error: Error): void;
}

/**
 * Passes data both ways, at the speed of the slower reader. Resolves when both connections are closed; never rejects. Data that one side
 * sent before it ended still reaches the other side. Aborting `signal` destroys the connection to the runtime; the client then has
 * LINGER_MILLIS to read the data that is on its way.
 */
export function join(
  client: Duplex,
  runtime: Duplex,
  timers: Timers,
  signal: AbortSignal,
  passing: Passing,
): Promise<void> {
  const closeSoon = (side: Duplex): void => {
    const cut = timers.at(timers.now() + LINGER_MILLIS, () => side.destroy());
    side.once('close', () => cut.cancel());
  };
  const whenReplied = (close: () => void): void => {
    if (!runtime.destroyed) closeAfterReplies(runtime, passing.replied(), timers, close);
  };
  const cutRuntime = (): void => whenReplied(() => runtime.destroy());
  const cut = (): void => {
    cutRuntime();
    closeSoon(client);
  };
  const failed = (error: Error): void => {
    passing.failed(error);
    cutRuntime();
    endClient();
  };
  // Discard data that the client still sends: closing a connection with unread bytes resets the connection, and the client loses the data
  // that it has not read yet.
  const endClient = callOnce(() => {
    discardClient();
    if (client.destroyed) return;
    client.once('finish', () => closeSoon(client));
    client.end();
  });
  const endRuntime = callOnce(() =>
    whenReplied(() => {
      runtime.end();
      closeSoon(runtime);
    }),
  );
  const discardClient = pass(client, runtime, (chunk) => passing.fromClient(chunk), failed);

  return new Promise((resolve) => {
    let open = 2;
    const closed = (): void => {
      open -= 1;
      if (open > 0) return;
      signal.removeEventListener('abort', cut);
      resolve();
    };
    const follow = (side: Duplex, ended: () => void): void => {
      const close = (): void => {
        ended();
        closed();
      };
      side.on('error', () => undefined);
      side.once('end', ended);
      if (side.closed) close();
      else side.once('close', close);
    };
    follow(client, endRuntime);
    follow(runtime, endClient);
    pass(runtime, client, (chunk) => passing.fromRuntime(chunk), failed);
    if (signal.aborted) cut();
    else signal.addEventListener('abort', cut, { once: true });
  });
}

/**
 * Calls `take` for the next chunk when the previous chunk has been handled and `to` accepts more. Returns a function that discards all
 * further chunks.
 */
function pass(
  from: Duplex,
  to: Duplex,
  take: (chunk: Uint8Array) => Promise<void> | void,
  failed: (error: Error) => void,
): () => void {
  let discards = false;
  from.on('data', (chunk: Uint8Array) => {
    if (discards) return;
    const taken = take(chunk);
    if (taken === undefined && !to.writableNeedDrain) return;
    from.pause();
    Promise.resolve(taken)
      .then(() => (to.writableNeedDrain ? drainedOrClosed(to) : undefined))
      .then(
        () => void from.resume(),
        (error: Error) => !discards && failed(error),
      );
  });
  return () => {
    discards = true;
    from.resume();
  };
}

function callOnce(call: () => void): () => void {
  let called = false;
  return () => {
    if (called) return;
    called = true;
    call();
  };
}
