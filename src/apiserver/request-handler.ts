/** Authenticates and authorizes each request, and calls the handler for its path. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiError, methodNotAllowed, pathNotFound } from '../machinery/status.ts';
import { METRICS_CONTENT_TYPE, metricsText } from '../platform/metrics.ts';
import { auditIdOf } from './audit/client-facts.ts';
import { recordFrom } from './audit/record-from.ts';
import { authorizeOther, authorizeResource } from './auth/authorize.ts';
import { impersonate, isImpersonating } from './auth/impersonate.ts';
import { rootPaths } from './discovery/root-paths.ts';
import { isDiscoveryPath, serveDiscovery } from './discovery/serve.ts';
import { isIssuerPath } from './discovery/token-issuer.ts';
import { ROTATE_KEY_PATH, serveRotation } from './encryption/serve-rotation.ts';
import { createHandling, type Handling } from './handling.ts';
import { sendBody, sendJson } from './http/answers.ts';
import { lateBodies } from './http/bounds/late-bodies.ts';
import { lateReaders } from './http/bounds/late-readers.ts';
import { outgoingBudget } from './http/bounds/outgoing.ts';
import { isNext } from './http/bounds/pipelining.ts';
import type { ServerContext } from './http/context.ts';
import { createExchange, type Exchange } from './http/exchange.ts';
import { sendFailure } from './http/failure.ts';
import { type HealthChecks, serveHealth } from './http/health.ts';
import { closingIfAnonymous } from './http/http2/anonymous.ts';
import { flag } from './http/query.ts';
import { serveResource } from './http/resources.ts';
import { findPath, findRoute, isLongRunning, pathSegments, type ResourceRoute } from './http/routes.ts';
import { END_WORKLOADS_PATH, serveEndWorkloads } from './serve-end-workloads.ts';
import { COPY_STORE_PATH, serveStoreCopy } from './serve-store-copy.ts';
import type { ApiServerOptions } from './server.ts';
import { takeable, type UpgradingConnection } from './streaming/upgrading-connection.ts';

export interface RequestHandler {
  /** `upgrading` is set if upgradeFilter() accepted the client's upgrade request; `response` then comes from answerOn(). */
  handle(request: IncomingMessage, response: ServerResponse, upgrading?: UpgradingConnection): Promise<void>;
  /** Ends long-running requests. Adds `Connection: close` to all responses whose headers are not sent yet. */
  close(): void;
  /** Called when a response or an upgraded connection has ended while the server is closing. */
  onIdleWhileClosing: () => void;
}

/**
 * The reason with which the signals of ended requests abort. All requests share this object, because creating one takes several
 * microseconds.
 */
const ENDED = new DOMException('the request has ended', 'AbortError');

export function createRequestHandler(options: ApiServerOptions): RequestHandler {
  const outgoing = outgoingBudget(options);
  const endDrops = options.backend.onDrop?.(outgoing.dropped);
  let closing = false;
  const shutdown = (): void => {
    if (closing) throw new Error('the server is closing');
  };
  const handling = createHandling(options, outgoing, { ...options.readyChecks, shutdown });
  const { measure } = handling;
  const bodies = lateBodies(options.timers);
  const readers = lateReaders(options.timers);
  const longRunning = new Set<AbortController>();
  const open = new Set<ServerResponse>();
  const handler: RequestHandler = {
    onIdleWhileClosing: () => undefined,
    async handle(request, response, upgrading) {
      const sharesConnection = request.httpVersionMajor > 1;
      if (upgrading === undefined && !sharesConnection && !(await isNext(request.socket, response))) return;
      bodies.begin(request);
      const abort = new AbortController();
      let taken: 'stream' | 'answer' | undefined;
      const begun = performance.now();
      open.add(response);
      (upgrading?.socket ?? response).once('close', () => {
        open.delete(response);
        readers.end(response);
        longRunning.delete(abort);
        if (taken !== 'stream') abort.abort(ENDED);
        const code = taken !== undefined ? 101 : response.headersSent ? response.statusCode : 499;
        // The response no longer has a connection, so close it here: otherwise, it would count as open forever.
        if (taken !== undefined) response.destroy().emit('close');
        measure.ended(exchange, code, (performance.now() - begun) / 1000);
        // Node.js treats the connection as idle only after this event.
        if (closing) setImmediate(handler.onIdleWhileClosing);
      });
      // Close a connection after an ignored upgrade: Node.js 24 does not respond to later requests on it whose headers are too large.
      const upgradeIgnored = upgrading === undefined && request.headers.upgrade !== undefined;
      if (closing || upgradeIgnored) response.setHeader('Connection', 'close');
      const endWithServer = (): void => {
        measure.markLongRunning(exchange);
        bodies.end(request);
        if (closing) abort.abort();
        else longRunning.add(abort);
      };
      const upgrade =
        upgrading &&
        takeable(response, upgrading, (answers) => {
          taken = answers ? 'answer' : 'stream';
          exchange.auditing?.started(101);
        });
      const exchange: Exchange = createExchange(request, response, {
        signal: abort.signal,
        endWithServer,
        outgoing: handling.outgoing.open(response, request.url ?? '/'),
        upgrade,
      });
      await answerOrFail(handling, exchange);
      if (taken === undefined && !exchange.mayPause && !response.closed && !response.destroyed) readers.begin(response);
    },
    close() {
      closing = true;
      endDrops?.();
      bodies.close();
      readers.close();
      for (const abort of longRunning) abort.abort();
      for (const response of open) if (!response.headersSent) response.setHeader('Connection', 'close');
    },
  };
  return handler;
}

const HEALTH_ENDPOINTS = ['healthz', 'livez', 'readyz'];

const checksOf = ({ readyChecks, liveChecks }: Handling, endpoint: string): HealthChecks =>
  endpoint === 'readyz' ? readyChecks : liveChecks;

/** Whether the path needs no authentication and no rights. As upstream, the paths of single health checks need rights. */
const isOpen = ([root = '', more]: readonly string[]): boolean =>
  more === undefined && (root === 'version' || HEALTH_ENDPOINTS.includes(root));

/** Responds with the list of paths that the server serves. As upstream, the JSON is indented. */
function serveRoot(handling: Handling, exchange: Exchange): Promise<void> {
  const checks = HEALTH_ENDPOINTS.flatMap((endpoint) => [
    `/${endpoint}`,
    ...Object.keys(checksOf(handling, endpoint)).map((name) => `/${endpoint}/${name}`),
  ]);
  const paths = rootPaths(handling.catalog.kinds, checks);
  return sendBody(exchange, 200, 'application/json', JSON.stringify({ paths }, undefined, 2));
}

async function answerOrFail(handling: Handling, exchange: Exchange): Promise<void> {
  try {
    await answer(handling, exchange);
  } catch (error) {
    await sendFailure(handling, exchange, error);
  } finally {
    exchange.auditing?.complete();
  }
}

async function answer(handling: Handling, exchange: Exchange): Promise<void> {
  const { request, response, method } = exchange;
  const auditID = auditIdOf(request);
  response.setHeader('Audit-Id', auditID);
  response.setHeader('Cache-Control', 'no-cache, private');
  const segments = pathSegments(exchange.path);
  const [root = ''] = segments;
  const isForAll = isOpen(segments);
  const authenticate = () =>
    closingIfAnonymous(exchange, () => handling.authentication.authenticate(request, isForAll));
  const authenticated =
    handling.audit === undefined
      ? authenticate()
      : recordFrom(handling.audit, exchange, { auditID, segments }, authenticate);
  exchange.user = authenticated instanceof Promise ? await authenticated : authenticated;
  if (isForAll) {
    onlyGet(method);
    if (root === 'version') return sendJson(exchange, 200, handling.version);
    return serveHealth(exchange, segments, checksOf(handling, root));
  }
  if (isImpersonating(request.headers)) {
    const sender = exchange.user;
    exchange.user = await impersonate(handling.authorizer, sender, request.headersDistinct);
    if (exchange.user !== sender) exchange.auditing?.impersonates(exchange.user);
  }
  const found = isResourcePath(segments) ? findResource(handling, exchange, segments) : undefined;
  // Long-running requests have limits of their own.
  if (found !== undefined && !(found instanceof ApiError) && isLongRunning(found))
    return serveFound(handling, exchange, segments, found);
  if (exchange.path === END_WORKLOADS_PATH) return serveOther(handling, exchange, segments);
  const entered = handling.enterFlight(exchange);
  const leave = entered instanceof Promise ? await entered : entered;
  try {
    if (found === undefined) await serveOther(handling, exchange, segments);
    else await serveFound(handling, exchange, segments, found);
  } finally {
    leave();
  }
}

/** Discovery documents are not resources, although their paths also begin with /api or /apis. */
const isResourcePath = (segments: readonly string[]): boolean =>
  (segments[0] === 'api' || segments[0] === 'apis') && !isDiscoveryPath(segments);

async function serveOther(handling: Handling, exchange: Exchange, segments: readonly string[]): Promise<void> {
  const { method, path } = exchange;
  const [root = ''] = segments;
  await authorizeOther(handling.authorizer, exchange, segments);
  if (HEALTH_ENDPOINTS.includes(root)) {
    onlyGet(method);
    return serveHealth(exchange, segments, checksOf(handling, root));
  }
  if (root === 'openapi') {
    onlyGet(method);
    return handling.documents.serve(exchange, segments);
  }
  if (isIssuerPath(path)) {
    onlyGet(method);
    return handling.serveIssuer(exchange);
  }
  if (isDiscoveryPath(segments)) {
    onlyGet(method);
    return serveDiscovery(handling, exchange, segments);
  }
  if (path === ROTATE_KEY_PATH && handling.rotateKey !== undefined) return serveRotation(exchange, handling.rotateKey);
  if (path === COPY_STORE_PATH && handling.copyStore !== undefined) return serveStoreCopy(exchange, handling.copyStore);
  if (path === END_WORKLOADS_PATH && handling.endWorkloads !== undefined)
    return serveEndWorkloads(exchange, handling.endWorkloads);
  if (segments.length === 0) {
    onlyGet(method);
    return serveRoot(handling, exchange);
  }
  if (root !== 'metrics' || segments.length > 1) throw pathNotFound();
  onlyGet(method);
  return sendBody(exchange, 200, METRICS_CONTENT_TYPE, metricsText(await handling.metrics.families()));
}

/** Sets exchange.route. Returns an error such as 404 or 405 if there is no route. */
function findResource(
  { catalog }: ServerContext,
  exchange: Exchange,
  segments: readonly string[],
): ResourceRoute | ApiError {
  try {
    const route = findRoute(findPath(catalog, segments), exchange.method, flag(exchange.query, 'watch') ?? false);
    exchange.route = route;
    return route;
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

/** Rejects with 403 if the user may not send the request, and otherwise with `found` if `found` is an error. */
function serveFound(
  handling: Handling,
  exchange: Exchange,
  segments: readonly string[],
  found: ResourceRoute | ApiError,
): Promise<void> {
  const { authorizer } = handling;
  if (found instanceof ApiError) return refuse(authorizeOther(authorizer, exchange, segments), found);
  const authorized = authorizeResource(authorizer, exchange, found);
  if (authorized === undefined) return serveResource(handling, exchange, found);
  return authorized.then(() => serveResource(handling, exchange, found));
}

async function refuse(authorized: Promise<void> | undefined, error: ApiError): Promise<never> {
  await authorized;
  throw error;
}

function onlyGet(method: string): void {
  if (method !== 'GET') throw methodNotAllowed();
}
