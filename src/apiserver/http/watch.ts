/**
 * Watches: one JSON line an event, until the client goes, the watch ends or the server closes.
 *
 * Invariant: what waits for a slow client is bounded. Beyond the bound the connection is cut; the client then watches
 * again from the last resourceVersion that it got.
 */
import type { WatchEvent } from '../../machinery/backend.ts';
import { encodeOnce } from '../../machinery/encode.ts';
import type { KubeObject, Status } from '../../machinery/meta.ts';
import { ApiError, internalError } from '../../machinery/status.ts';
import { encodeTable, includeObjectOf } from '../tables/table.ts';
import type { ServerContext } from './context.ts';
import { type Exchange, startAnswer } from './exchange.ts';
import type { ObjectForm } from './negotiate.ts';
import { watchOptions } from './query.ts';
import type { ResourceRoute } from './routes.ts';

/** What may wait for a client, beside the events that the watch begins with. */
const MAX_PENDING_BYTES = 16 * 1024 * 1024;
/** Watches without timeoutSeconds end after 30 to 60 minutes. Source: --min-request-timeout of v1.33. */
const MIN_TIMEOUT_SECONDS = 1800;

const line = (type: string, object: string): string => `{"type":"${type}","object":${object}}\n`;

/** Encodes the events of one watch. */
function eventEncoder(server: ServerContext, exchange: Exchange, route: ResourceRoute, form: ObjectForm) {
  const includeObject = includeObjectOf(exchange.query.get('includeObject'));
  let withColumns = true;
  return (event: WatchEvent): string => {
    if (event.type === 'ERROR' || form === 'object') return line(event.type, encodeOnce(event.object));
    const { resourceVersion } = event.object.metadata;
    // A bookmark's object has nothing but its resourceVersion: there is no row to show.
    const rows: KubeObject[] = event.type === 'BOOKMARK' ? [] : [event.object];
    const metadata = resourceVersion === undefined ? {} : { resourceVersion };
    const context = { now: server.timers.now() };
    const table = encodeTable(route.kind, rows, metadata, { includeObject, context, withColumns });
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
  /** Lines from before the answer starts. */
  const initial: string[] = [];
  let bound: number | undefined;
  const sink = (event: WatchEvent): void => {
    if (signal.aborted || response.destroyed) return;
    const text = encode(event);
    if (bound === undefined) {
      initial.push(text);
      return;
    }
    response.write(text);
    if (response.writableLength <= bound) return;
    server.log.warn('watch cut: the client reads too slowly', {
      path: exchange.path,
      pendingBytes: response.writableLength,
    });
    // Its end aborts the signal, and that ends the watch.
    response.destroy();
  };
  const watch = server.backend.watch(route.ref, { ...options, timeoutSeconds }, sink, signal);
  // Clients wait for the headers before they read, and there may be no event for long. A watch that cannot start says so
  // at once; one that fails later ends with an ERROR event.
  const failed = await Promise.race([watch.then(undefined, failureOf), nextTurn()]);
  if (failed !== undefined) throw failed;
  if (response.destroyed) return;
  startAnswer(exchange, 200, { 'Content-Type': 'application/json' });
  response.flushHeaders();
  const text = initial.join('');
  initial.length = 0;
  bound = MAX_PENDING_BYTES + text.length;
  if (text !== '') response.write(text);
  const error = await watch.then(undefined, failureOf);
  if (error !== undefined && !signal.aborted) response.write(line('ERROR', JSON.stringify(statusOf(server, error))));
  if (!response.destroyed) response.end();
}

const failureOf = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));
const nextTurn = (): Promise<undefined> => new Promise((resolve) => setImmediate(resolve, undefined));

function statusOf(server: ServerContext, error: Error): Status {
  if (error instanceof ApiError) return error.status;
  server.log.error('watch failed', { error: error.stack ?? error.message });
  return internalError('the watch failed').status;
}
