/**
 * Watches: one JSON line an event, until the client goes, the watch ends or the server closes.
 *
 * Invariant: what waits for a slow client is bounded. Beyond the bound the connection is cut; the client then watches
 * again from the last resourceVersion that it got.
 */

import { encodeOnce } from '../../machinery/encode.ts';
import type { KubeObject, Status } from '../../machinery/meta.ts';
import { ApiError, internalError } from '../../machinery/status.ts';
import type { WatchEvent, WatchSink } from '../../ports/backend.ts';
import { objectBytes } from '../cache/stored-object.ts';
import { includeObjectOf, tableTexts } from '../tables/table.ts';
import { evenly } from './answers.ts';
import { STALLED_MILLIS } from './bounds/outgoing.ts';
import type { ServerContext } from './context.ts';
import { type Exchange, startAnswer } from './exchange.ts';
import type { ObjectForm } from './negotiate.ts';
import { watchOptions } from './query.ts';
import type { ResourceRoute } from './routes.ts';

/** The limit of the events that wait for one client, without the objects that the watch begins with. */
const MAX_PENDING_BYTES = 16 * 1024 * 1024;
/** Watches without timeoutSeconds end after 30 to 60 minutes. Source: --min-request-timeout of v1.33. */
const MIN_TIMEOUT_SECONDS = 1800;

/** The array of the queue is made shorter after this number of events. */
const FORGET_AFTER = 100;

const line = (type: string, object: Iterable<string>): string[] => [`{"type":"${type}","object":`, ...object, '}\n'];

/** Encodes the events of one watch. */
function eventEncoder(server: ServerContext, exchange: Exchange, route: ResourceRoute, form: ObjectForm) {
  const includeObject = includeObjectOf(exchange.query.get('includeObject'));
  let withColumns = true;
  return (event: WatchEvent): string[] => {
    if (event.type === 'ERROR' || form === 'object') return line(event.type, [encodeOnce(event.object)]);
    const { resourceVersion } = event.object.metadata;
    // A bookmark's object has nothing but its resourceVersion: there is no row to show.
    const rows: KubeObject[] = event.type === 'BOOKMARK' ? [] : [event.object];
    const metadata = resourceVersion === undefined ? {} : { resourceVersion };
    const context = { now: server.timers.now() };
    const table = [...tableTexts(route.kind, rows, metadata, { includeObject, context, withColumns })];
    withColumns = false;
    return line(event.type, table);
  };
}

/** Rejects with an ApiError where the watch cannot start. */
export async function serveWatch(
  server: ServerContext,
  exchange: Exchange,
  route: ResourceRoute,
  form: ObjectForm,
): Promise<void> {
  const { response, signal } = exchange;
  const options = watchOptions(exchange.query, route.namespace);
  const timeoutSeconds = options.timeoutSeconds ?? Math.round(MIN_TIMEOUT_SECONDS * (1 + Math.random()));
  const encode = eventEncoder(server, exchange, route, form);
  exchange.endWithServer();
  const writer = eventWriter(server, exchange, encode);
  const sink: WatchSink = (event, initial) => {
    if (!signal.aborted && !response.destroyed) writer.add(event, initial);
  };
  const watch = server.backend.watch(route.ref, { ...options, timeoutSeconds }, sink, signal);
  // Clients wait for the headers before they read, and there may be no event for long. A watch that cannot start says so
  // at once; one that fails later ends with an ERROR event.
  const failed = await Promise.race([watch.then(undefined, failureOf), nextTurn()]);
  if (failed !== undefined) throw failed;
  if (response.destroyed) return;
  startAnswer(exchange, 200, { 'Content-Type': 'application/json' });
  response.flushHeaders();
  writer.start();
  const error = await watch.then(undefined, failureOf);
  if (error !== undefined && !signal.aborted) writer.add({ type: 'ERROR', object: statusOf(server, error) });
  if (!signal.aborted) await writer.written();
  if (!response.destroyed) response.end();
}

interface EventWriter {
  /** Objects that the cache has count for nobody; with others that the watch begins with none is cut for their number alone. */
  add: WatchSink;
  /** Begins to write. */
  start(): void;
  /** Resolves when every event is written, or the connection is closed. */
  written(): Promise<void>;
}

/** An event waits as an object, which all watches share. It is encoded when the connection has room for it. */
function eventWriter(server: ServerContext, exchange: Exchange, encode: (event: WatchEvent) => string[]): EventWriter {
  const { response, outgoing } = exchange;
  let queue: ({ event: WatchEvent; bytes: number; initial: boolean } | undefined)[] = [];
  let first = 0;
  let pending = 0;
  let started = false;
  let writing = false;
  let last: Promise<void> = Promise.resolve();
  const writeAll = async (): Promise<void> => {
    writing = true;
    await outgoing.ready();
    for (let next = queue[first]; next !== undefined && !response.destroyed; next = queue[first]) {
      // The array must not keep the object of an event that is written.
      queue[first] = undefined;
      first += 1;
      if (!next.initial) pending -= next.bytes;
      for (const piece of evenly(encode(next.event))) {
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
  const writeOn = (): void => {
    last = writeAll().catch((error: unknown) => {
      server.log.error('watch failed', { path: exchange.path, error: (error as Error)?.stack ?? String(error) });
      response.destroy();
    });
  };
  return {
    add(event, initial) {
      const bytes = initial === 'shared' ? 0 : objectBytes(event.object as KubeObject);
      queue.push({ event, bytes, initial: initial !== undefined });
      if (initial === undefined) pending += bytes;
      if (bytes > 0) outgoing.keep(event.object, bytes);
      else outgoing.hold(event.object as KubeObject);
      if (started && !writing) writeOn();
      if (pending <= MAX_PENDING_BYTES) return;
      server.log.warn('watch cut: the client reads too slowly', { path: exchange.path, pendingBytes: pending });
      // Its end aborts the signal, and that ends the watch.
      response.destroy();
    },
    start() {
      started = true;
      writeOn();
    },
    async written() {
      while (writing && !response.destroyed) await Promise.race([last, outgoing.ready(STALLED_MILLIS)]);
    },
  };
}

const failureOf = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));
const nextTurn = (): Promise<undefined> => new Promise((resolve) => setImmediate(resolve, undefined));

function statusOf(server: ServerContext, error: Error): Status {
  if (error instanceof ApiError) return error.status;
  server.log.error('watch failed', { error: error.stack ?? error.message });
  return internalError('the watch failed').status;
}
