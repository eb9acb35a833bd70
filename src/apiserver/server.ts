/**
 * The API server: the Kubernetes API over HTTPS, on top of a ResourceBackend.
 *
 * Job: decode requests, authenticate and authorize them, call the backend, and encode the responses: objects, lists, Tables,
 * watches, logs, streams, discovery, OpenAPI, health, version.
 * Boundary: the server uses the kinds only as data (src/api/kind.ts) and stores no objects. The registry has the rules of writes;
 * the node provides the logs and streams of containers.
 *
 * Invariants:
 *  1. A handled request that fails before its response has begun gets a metav1.Status. Unexpected failures are logged, and their
 *     details are not sent.
 *  2. A client without a certificate of lifepod's authority can read only health and version.
 *  3. When a client disconnects, its watches, logs and streams end, and the server stops reading lists for the client.
 *  4. No failure of a request ends the process: if a response is impossible, the connection is closed.
 *  5. close() ends watches, followed logs and streams immediately, and waits up to CLOSE_GRACE_MILLIS for all other requests.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { KindCatalog } from '../api/catalog.ts';
import { methodNotAllowed, pathNotFound, unauthorized } from '../machinery/status.ts';
import { UserError } from '../platform/files.ts';
import { createMetrics, METRICS_CONTENT_TYPE, type Metrics, metricsText } from '../platform/metrics.ts';
import type { Log, Timers } from '../platform/platform.ts';
import type { ResourceBackend } from '../ports/backend.ts';
import type { NodeConnection } from '../ports/node-connection.ts';
import type { NodeReports } from '../ports/node-reports.ts';
import type { UserInfo } from '../ports/request.ts';
import { authenticate } from './auth/authenticate.ts';
import { authorizePath, authorizeResource } from './auth/authorize.ts';
import { isDiscoveryPath, serveDiscovery } from './discovery/serve.ts';
import { sendBody, sendJson } from './http/answers.ts';
import { bodyReader } from './http/body.ts';
import { boundConnections, DEFAULT_LIMITS, type Limits, places } from './http/bounds/limits.ts';
import { type OutgoingBudget, outgoingBudget } from './http/bounds/outgoing.ts';
import { isNext } from './http/bounds/pipelining.ts';
import { unfinishedParts } from './http/bounds/unfinished.ts';
import { answerClientErrors } from './http/client-errors.ts';
import type { ServerContext } from './http/context.ts';
import { createExchange, type Exchange } from './http/exchange.ts';
import { sendFailure } from './http/failure.ts';
import { type HealthChecks, serveHealth } from './http/health.ts';
import { flag } from './http/query.ts';
import { createRequestMetrics } from './http/request-metrics.ts';
import { serveResource } from './http/resources.ts';
import { findPath, findRoute, pathSegments } from './http/routes.ts';
import { versionInfo } from './http/version.ts';
import { type OpenApi, openApi } from './openapi/openapi.ts';
import type { Pki } from './pki/pki.ts';
import { createStreamRoom } from './streaming/spdy/stream-limit.ts';
import { answerOn, takeable, type UpgradingConnection, upgradeFilter } from './streaming/upgrading-connection.ts';

/** How long the server keeps idle connections: longer than Go's clients (90 s), so that they do not send a request on a closed one. */
const KEEP_ALIVE_MILLIS = 120_000;
/** The time limit for a TLS handshake: a connection uses memory and a file descriptor even before its client is authenticated. */
const HANDSHAKE_MILLIS = 10_000;
/** How long close() waits for requests in progress before it closes their connections. */
const CLOSE_GRACE_MILLIS = 5_000;

export interface ApiServerOptions {
  backend: ResourceBackend;
  catalog: KindCatalog;
  nodes: NodeConnection & NodeReports;
  pki: Pki;
  /** The address or hostname to listen on. The default is 127.0.0.1. */
  host?: string;
  /** The port to listen on; 0 picks a free port. */
  port: number;
  /** The version of lifepod, for example 0.1.0. /version and the OpenAPI documents contain it. */
  version: string;
  timers: Timers;
  log: Log;
  /** The checks of /readyz in addition to ping and shutdown, by name. The default is none. */
  readyChecks?: HealthChecks;
  /** The metrics that /metrics serves. The server adds its request metrics. By default, /metrics serves only the request metrics. */
  metrics?: Metrics;
  /** The limits on connections, TLS handshakes, watches and streams. The default is DEFAULT_LIMITS. */
  limits?: Limits;
}

export interface ApiServer {
  host: string;
  port: number;
  close(): Promise<void>;
}

/**
 * Resolves when the server listens. Rejects with a UserError if the port is in use, the host is not an address of this machine, or
 * listening on the port requires root.
 */
export async function startApiServer(options: ApiServerOptions): Promise<ApiServer> {
  const host = options.host ?? '127.0.0.1';
  const requests = createRequestHandler(options);
  const handle = (...[request, ...rest]: Parameters<RequestHandler['handle']>): void => {
    // An unhandled rejection would end the process.
    requests.handle(request, ...rest).catch((error: unknown) => {
      request.socket.destroy();
      options.log.error('request failed without a response', { path: request.url, error: String(error) });
    });
  };
  const server = createServer(
    {
      cert: options.pki.serving.certificate,
      key: options.pki.serving.key,
      ca: options.pki.caCertificate,
      // A client certificate is optional, because health and version need none. authenticate() refuses unverified certificates.
      requestCert: true,
      rejectUnauthorized: false,
      minVersion: 'TLSv1.2',
      handshakeTimeout: HANDSHAKE_MILLIS,
      keepAliveTimeout: KEEP_ALIVE_MILLIS,
      shouldUpgradeCallback: upgradeFilter(options.catalog),
    },
    (request, response) => handle(request, response),
  );
  answerClientErrors(server, options.timers);
  boundConnections(server, options.limits ?? DEFAULT_LIMITS, options.log);
  server.on('upgrade', (request, connection, head) => {
    const socket = connection as Socket;
    handle(request, answerOn(request, socket), { socket, head });
  });
  // While the server closes, close each connection that becomes idle, so that close() does not wait for it.
  requests.onIdleWhileClosing = () => server.closeIdleConnections();
  server.on('tlsClientError', (error) => options.log.debug('TLS handshake failed', { error: error.message }));
  await listen(server, host, options.port);
  const { port } = server.address() as AddressInfo;
  options.log.info('API server is listening', { host, port });
  let closed: Promise<void> | undefined;
  return { host, port, close: () => (closed ??= close(server, requests, options.timers)) };
}

async function listen(server: Server, host: string, port: number): Promise<void> {
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE')
      throw new UserError(`port ${port} on ${host} is already in use: choose another with --port`);
    if (code === 'EADDRNOTAVAIL')
      throw new UserError(`cannot listen on ${host}: this machine does not have that address`);
    if (code === 'EACCES')
      throw new UserError(`permission denied to listen on port ${port}: run as root, or choose another with --port`);
    throw error;
  }
}

async function close(server: Server, requests: RequestHandler, timers: Timers): Promise<void> {
  const ended = once(server, 'close');
  server.close();
  requests.close();
  const cut = timers.at(timers.now() + CLOSE_GRACE_MILLIS, () => server.closeAllConnections());
  await ended;
  cut.cancel();
}

interface RequestHandler {
  /** `upgrading` is set if upgradeFilter() accepted the client's upgrade request; `response` then comes from answerOn(). */
  handle(request: IncomingMessage, response: ServerResponse, upgrading?: UpgradingConnection): Promise<void>;
  /** Ends long-running requests. Adds `Connection: close` to all responses whose headers are not sent yet. */
  close(): void;
  /** Called when a response or an upgraded connection has ended while the server is closing. */
  onIdleWhileClosing: () => void;
}

interface Handling extends ServerContext {
  documents: OpenApi;
  outgoing: OutgoingBudget;
  version: Record<string, string>;
  metrics: Metrics;
  liveChecks: HealthChecks;
  readyChecks: HealthChecks;
}

function createRequestHandler(options: ApiServerOptions): RequestHandler {
  const unfinished = unfinishedParts();
  const outgoing = outgoingBudget(options);
  const limits = options.limits ?? DEFAULT_LIMITS;
  const endDrops = options.backend.onDrop?.(outgoing.dropped);
  let closing = false;
  const shutdown = (): void => {
    if (closing) throw new Error('the server is closing');
  };
  const handling: Handling = {
    ...options,
    documents: openApi(options.catalog, options.version),
    version: versionInfo(options.version),
    outgoing,
    watches: places(limits.watches),
    streams: places(limits.streams),
    forwarded: createStreamRoom(limits.forwarded),
    unfinished,
    bodies: bodyReader(unfinished),
    metrics: options.metrics ?? createMetrics(),
    liveChecks: { ping: () => undefined },
    readyChecks: { ping: () => undefined, ...options.readyChecks, shutdown },
  };
  const measure = createRequestMetrics(handling.metrics);
  const longRunning = new Set<AbortController>();
  const open = new Set<ServerResponse>();
  const handler: RequestHandler = {
    onIdleWhileClosing: () => undefined,
    async handle(request, response, upgrading) {
      if (upgrading === undefined && !(await isNext(request.socket, response))) return;
      const abort = new AbortController();
      let taken = false;
      const begun = performance.now();
      open.add(response);
      (upgrading?.socket ?? response).once('close', () => {
        open.delete(response);
        longRunning.delete(abort);
        if (!taken) abort.abort();
        const code = taken ? 101 : response.headersSent ? response.statusCode : 499;
        measure.ended(exchange, code, (performance.now() - begun) / 1000);
        // Node.js treats the connection as idle only after this event.
        if (closing) setImmediate(handler.onIdleWhileClosing);
      });
      // Close a connection after an ignored upgrade: on it, Node.js 24 does not respond to later requests with too large headers.
      const upgradeIgnored = upgrading === undefined && request.headers.upgrade !== undefined;
      if (closing || upgradeIgnored) response.setHeader('Connection', 'close');
      const endWithServer = (): void => {
        measure.markLongRunning(exchange);
        if (closing) abort.abort();
        else longRunning.add(abort);
      };
      const upgrade = upgrading && takeable(response, upgrading, () => (taken = true));
      const exchange: Exchange = createExchange(request, response, {
        signal: abort.signal,
        endWithServer,
        outgoing: handling.outgoing.open(response, request.url ?? '/'),
        upgrade,
      });
      await answer(handling, exchange).catch((error: unknown) => sendFailure(handling, exchange, error));
    },
    close() {
      closing = true;
      endDrops?.();
      for (const abort of longRunning) abort.abort();
      for (const response of open) if (!response.headersSent) response.setHeader('Connection', 'close');
    },
  };
  return handler;
}

const users = new WeakMap<TLSSocket, UserInfo>();

function userOf(request: IncomingMessage): UserInfo {
  const socket = request.socket as TLSSocket;
  const user = users.get(socket) ?? authenticate(socket);
  if (user === undefined) throw unauthorized();
  users.set(socket, user);
  return user;
}

const HEALTH_ENDPOINTS = ['healthz', 'livez', 'readyz'];

async function answer(handling: Handling, exchange: Exchange): Promise<void> {
  const { request, response, method } = exchange;
  response.setHeader('Audit-Id', String(request.headers['audit-id'] ?? randomUUID()).replace(/[^\x21-\x7e]/g, ''));
  response.setHeader('Cache-Control', 'no-cache, private');
  const segments = pathSegments(exchange.path);
  const [root = ''] = segments;
  if (HEALTH_ENDPOINTS.includes(root)) {
    onlyGet(method);
    return serveHealth(exchange, segments, root === 'readyz' ? handling.readyChecks : handling.liveChecks);
  }
  if (root === 'version' && segments.length === 1) {
    onlyGet(method);
    return sendJson(exchange, 200, handling.version);
  }
  exchange.user = userOf(request);
  if (root === 'openapi') {
    authorizePath(exchange.user, method, exchange.path);
    onlyGet(method);
    return handling.documents.serve(exchange, segments);
  }
  if (isDiscoveryPath(segments)) {
    authorizePath(exchange.user, method, exchange.path);
    onlyGet(method);
    return serveDiscovery(handling, exchange, segments);
  }
  if (root !== 'api' && root !== 'apis') {
    authorizePath(exchange.user, method, exchange.path);
    if (root !== 'metrics' || segments.length > 1) throw pathNotFound();
    onlyGet(method);
    return sendBody(exchange, 200, METRICS_CONTENT_TYPE, metricsText(await handling.metrics.families()));
  }
  const route = findRoute(findPath(handling.catalog, segments), method, flag(exchange.query, 'watch') ?? false);
  exchange.route = route;
  authorizeResource(exchange.user, route);
  return serveResource(handling, exchange, route);
}

function onlyGet(method: string): void {
  if (method !== 'GET') throw methodNotAllowed();
}
