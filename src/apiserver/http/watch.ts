/**
 * Serves watches.
 *
 * Invariant: the bytes of the events that wait for a slow client are bounded by MAX_PENDING_BYTES, except for the initial events. Beyond
 * the bound, the server closes the connection, and the client can start a new watch from the last resourceVersion that it received.
 */

import type { KubeObject, Status } from '../../machinery/meta.ts';
import { ApiError, internalError } from '../../machinery/status.ts';
import type { WatchEvent, WatchSink } from '../../ports/backend.ts';
import { objectBytes } from '../cache/stored-object.ts';
import type { Representation } from '../representation/representation.ts';
import { messagesOf } from '../streaming/message-output.ts';
import { offeredProtocols, watchProtocol } from '../streaming/web-socket.ts';
import { evenBytes, PIECE_CHARS } from './answers.ts';
import { STALLED_MILLIS } from './bounds/outgoing.ts';
import type { ServerContext } from './context.ts';
import { type Exchange, requestContext, startAnswer } from './exchange.ts';
import { watchOptions } from './query.ts';
import type { ResourceRoute } from './routes.ts';

/** The limit on the bytes of the events that wait for one client, except the initial events. */
const MAX_PENDING_BYTES = 16 * 1024 * 1024;
/** Watches without timeoutSeconds end after 30 to 60 minutes. Source: --min-request-timeout of v1.33. */
const MIN_TIMEOUT_SECONDS = 1800;

const FORGET_AFTER = 100;

/** Resolves when the watch has ended. Rejects if the watch cannot start. Each event for a WebSocket is a message. */
export async function serveWatch(
  server: ServerContext,
  exchange: Exchange,
  route: ResourceRoute,
  representation: Representation,
): Promise<void> {
  const { response, outgoing, signal } = exchange;
  const open = messagesOf(server, exchange);
  const protocol = open && watchProtocol(offeredProtocols(exchange.request));
  const options = watchOptions(exchange.query, route.namespace, route.name);
  const timeoutSeconds = options.timeoutSeconds ?? Math.round(MIN_TIMEOUT_SECONDS * (1 + Math.random()));
  exchange.endWithServer();
  const writer = eventWriter(server, exchange, {
    encode(event) {
      const bytes = representation.event(event);
      return open === undefined ? bytes : representation.message(bytes);
    },
    // Do not split an event for a WebSocket, because each write is a message.
    piecesOf: (encoded) => (open === undefined ? evenBytes([encoded as Uint8Array]) : [encoded]),
  });
  const sink: WatchSink = (event, initial) => {
    if (!signal.aborted && !outgoing.isClosed) writer.add(event, initial);
  };
  const watch = server.backend.watch(requestContext(exchange, route), { ...options, timeoutSeconds }, sink);
  // Clients wait for the headers, and the first event may come late, so send the headers early. Most watches that cannot start reject
  // before the next turn of the event loop. A watch that rejects later ends with an ERROR event.
  const failed = await Promise.race([watch.then(undefined, failureOf), nextTurn()]);
  if (failed !== undefined) throw failed;
  if (outgoing.isClosed) return;
  if (open === undefined) {
    startAnswer(exchange, 200, { 'Content-Type': representation.watchContentType });
    response.flushHeaders();
  } else {
    await open(protocol);
  }
  writer.start();
  const error = await watch.then(undefined, failureOf);
  if (error !== undefined && !signal.aborted) writer.add({ type: 'ERROR', object: statusOf(server, error) });
  if (!signal.aborted) await writer.written();
  outgoing.end();
}

interface EventWriter {
  /**
   * Writes or queues an event. Initial objects do not count toward MAX_PENDING_BYTES. A queued initial object from the cache counts as held
   * (see held-objects.ts). Other queued objects count with their size.
   */
  add: WatchSink;
  /** Call it when the headers have been sent. */
  start(): void;
  /**
   * Resolves when all events are written or the connection is closed. Closes the connection of a client that does not read the waiting
   * bytes within STALLED_MILLIS.
   */
  written(): Promise<void>;
}

interface Encoding {
  /** Call it once for each event, because the first Table differs from those that follow. */
  encode(event: WatchEvent): string | Uint8Array;
  piecesOf(encoded: string | Uint8Array): Iterable<string | Uint8Array>;
}

interface Waiting {
  event: WatchEvent;
  bytes: number;
  initial: boolean;
  /** The encoded event, if it is long and its writing begins at once, or if an ERROR event comes after it. */
  encoded: string | Uint8Array | undefined;
}

/** An event that must wait is queued without being encoded, because all watches share the objects of events. */
function eventWriter(server: ServerContext, exchange: Exchange, { encode, piecesOf }: Encoding): EventWriter {
  const { outgoing } = exchange;
  let queue: (Waiting | undefined)[] = [];
  let first = 0;
  let pending = 0;
  let started = false;
  let writing = false;
  let last: Promise<void> = Promise.resolve();
  const writeAll = async (): Promise<void> => {
    writing = true;
    await outgoing.ready();
    for (let next = queue[first]; next !== undefined && !outgoing.isClosed; next = queue[first]) {
      // Clear the slot, so that the queue does not keep the object after the event has been written.
      queue[first] = undefined;
      first += 1;
      if (!next.initial) pending -= next.bytes;
      for (const piece of piecesOf(next.encoded ?? encode(next.event))) {
        if (!outgoing.write(piece)) await outgoing.ready();
      }
      if (next.bytes > 0) outgoing.drop(next.event.object, next.bytes);
      else outgoing.release(next.event.object as KubeObject);
      if (first < FORGET_AFTER) continue;
      queue = queue.slice(first);
      first = 0;
    }
    queue = [];
    first = 0;
    writing = false;
  };
  const fail = (error: unknown): void => cutWatch(server, exchange, error);
  const startWriting = (): void => {
    last = writeAll().catch(fail);
  };
  return {
    add(event, initial) {
      let encoded: string | Uint8Array | undefined;
      try {
        if (event.type === 'ERROR') encodeWaiting(queue, encode);
        if (started && !writing && outgoing.isReady) encoded = encode(event);
      } catch (error) {
        return fail(error);
      }
      // Bypass the queue: its promises and map entries would be costly, because many watches get each event.
      if (encoded !== undefined && encoded.length < PIECE_CHARS) return void outgoing.write(encoded);
      const bytes = initial === 'shared' ? 0 : objectBytes(event.object as KubeObject);
      queue.push({ event, bytes, initial: initial !== undefined, encoded });
      if (initial === undefined) pending += bytes;
      if (bytes > 0) outgoing.keep(event.object, bytes);
      else outgoing.hold(event.object as KubeObject);
      if (started && !writing) startWriting();
      if (pending <= MAX_PENDING_BYTES) return;
      server.log.warn('watch cut: the client reads too slowly', { path: exchange.path, pendingBytes: pending });
      // Closing the response aborts the signal, which ends the watch.
      outgoing.destroy();
    },
    start() {
      started = true;
      startWriting();
    },
    async written() {
      while (writing && !outgoing.isClosed) await Promise.race([last, outgoing.ready(STALLED_MILLIS)]);
      // The last event may have bypassed the queue, so also wait until the connection has accepted it.
      await outgoing.ready(STALLED_MILLIS);
    },
  };
}

/**
 * Encodes the waiting events before an error ends the watch. If the error is the removal of the kind, the facts about its types, which
 * encode() needs, are removed next.
 */
function encodeWaiting(queue: readonly (Waiting | undefined)[], encode: Encoding['encode']): void {
  for (const waiting of queue) if (waiting !== undefined) waiting.encoded ??= encode(waiting.event);
}

function cutWatch(server: ServerContext, { path, outgoing }: Exchange, error: unknown): void {
  server.log.error('watch failed', { path, error: (error as Error)?.stack ?? String(error) });
  outgoing.destroy();
}

const failureOf = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));
const nextTurn = (): Promise<undefined> => new Promise((resolve) => setImmediate(resolve, undefined));

function statusOf(server: ServerContext, error: Error): Status {
  if (error instanceof ApiError) return error.status;
  server.log.error('watch failed', { error: error.stack ?? error.message });
  return internalError('the watch failed').status;
}
