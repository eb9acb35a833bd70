/**
 * The API server: the Kubernetes API over HTTPS, on top of a ResourceBackend.
 *
 * Job: decode requests, authenticate and authorize them, call the backend, and encode the responses.
 * Boundary: the server uses the kinds only as data (src/api/kind.ts) and stores no objects. The registry applies the rules for writes; the
 * node provides the logs and streams of containers.
 *
 * Invariants:
 *  1. A handled request that fails before its response has begun gets a metav1.Status. Unexpected failures are logged, and their details
 *     are not sent.
 *  2. A client without credentials can read only health and version. A client with invalid credentials can read nothing.
 *  3. When a client disconnects, its watches, logs and streams end, and the server stops reading lists for the client.
 *  4. No failure of a request ends the process: if a response is impossible, the connection is closed.
 *  5. close() ends watches, followed logs and streams immediately, and waits up to CLOSE_GRACE_MILLIS for all other requests.
 */
import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { SecureContextOptions } from 'node:tls';
import type { KindCatalog } from '../api/catalog.ts';
import type { Metrics } from '../platform/metrics.ts';
import type { Clock, Log, Timers } from '../platform/platform.ts';
import type { Authorizer } from '../ports/authorizer.ts';
import type { ResourceBackend } from '../ports/backend.ts';
import type { NodeConnection } from '../ports/node-connection.ts';
import type { NodeReports } from '../ports/node-reports.ts';
import type { Audit } from './audit/audit.ts';
import type { AuthenticationSettings } from './auth/authentication/authenticate.ts';
import { boundConnections, DEFAULT_LIMITS, type Limits } from './http/bounds/limits.ts';
import { answerClientErrors } from './http/client-errors.ts';
import type { HealthChecks } from './http/health.ts';
import { serveHttp2 } from './http/http2/serve.ts';
import { createListeners, type Listeners, listen } from './listeners.ts';
import type { Pki } from './pki/pki.ts';
import { createRequestHandler, type RequestHandler } from './request-handler.ts';
import type { EndWorkloads } from './serve-end-workloads.ts';
import { answerOn, upgradeFilter } from './streaming/upgrading-connection.ts';

/** Longer than Go's clients keep idle connections (90 s), so that no client sends a request on a connection that the server has closed. */
const KEEP_ALIVE_MILLIS = 120_000;
/** The time limit for the head of a request. It equals the default of Node.js, but must be set because requestTimeout is 0. */
const HEAD_MILLIS = 60_000;
/** A connection uses memory and a file descriptor even before its client is authenticated. */
const HANDSHAKE_MILLIS = 10_000;
const CLOSE_GRACE_MILLIS = 5_000;

export interface ApiServerOptions {
  backend: ResourceBackend;
  catalog: KindCatalog;
  nodes: NodeConnection & NodeReports;
  pki: Pki;
  /** Decides what users who are not members of system:masters may do. By default, they may do nothing. */
  authorizer?: Authorizer;
  /** By default, no request is recorded. */
  audit?: Audit;
  /** Authenticators in addition to client certificates, ServiceAccount tokens and bootstrap tokens. The default is none. */
  authentication?: AuthenticationSettings;
  /** An address or a hostname. The default is 127.0.0.1. */
  host?: string;
  /** 0 picks a free port. */
  port: number;
  /** The version of the API and of lifepod, for example v1.33.0+lifepod.0.1.0. */
  version: string;
  /** The hash of the commit that lifepod was built from, for /version. The default is unknown. */
  gitCommit?: string | undefined;
  /** The time of that commit, for /version. The default is unknown. */
  buildDate?: string | undefined;
  timers: Timers;
  /** The clock with which the dates of client certificates are compared. The default is `timers`. */
  clock?: Clock;
  log: Log;
  /** The checks of /readyz in addition to ping and shutdown. The default is none. */
  readyChecks?: HealthChecks;
  /**
   * Replaces the key that encrypts stored values, and resolves to the number of values. If absent, the server does not serve
   * ROTATE_KEY_PATH.
   */
  rotateKey?: () => Promise<number>;
  /** Copies the content of the store to a file that `lifepod backup` then reads. If absent, the server does not serve COPY_STORE_PATH. */
  copyStore?: () => Promise<void>;
  /**
   * Requests the end of the workloads, and withdraws the request when the signal aborts. If absent, the server does not serve
   * END_WORKLOADS_PATH.
   */
  endWorkloads?: EndWorkloads;
  /** The metrics that /metrics serves in addition to the request metrics. The default is none. */
  metrics?: Metrics;
  /** The default is DEFAULT_LIMITS. */
  limits?: Limits;
  /** The default is true. */
  http2?: boolean;
}

export type ServerCertificates = Pick<Pki, 'serving' | 'caCertificate'>;

export interface ApiServer {
  host: string;
  port: number;
  /** Listens on another address with the same port. Rejects with a UserError like startApiServer(). */
  listenOn(host: string): Promise<void>;
  /** Uses the certificates for new connections. Open connections are not affected. */
  useCertificates(pki: ServerCertificates): void;
  close(): Promise<void>;
}

const secureContextOf = ({ serving, caCertificate }: ServerCertificates): SecureContextOptions => ({
  cert: serving.certificate,
  key: serving.key,
  ca: caCertificate,
  minVersion: 'TLSv1.2',
});

/**
 * Resolves when the server listens. Rejects with a UserError if the port is in use, the host is not an address of this machine, or
 * listening on the port requires root.
 */
export async function startApiServer(options: ApiServerOptions): Promise<ApiServer> {
  const host = options.host ?? '127.0.0.1';
  const requests = createRequestHandler(options);
  const handle = (...[request, ...rest]: Parameters<RequestHandler['handle']>): Promise<void> =>
    // An unhandled rejection would end the process.
    requests.handle(request, ...rest).catch((error: unknown) => {
      request.socket.destroy();
      options.log.error('request failed without a response', { path: request.url, error: String(error) });
    });
  const withHttp2 = options.http2 ?? true;
  const server = createServer(
    {
      ...secureContextOf(options.pki),
      // A client certificate is optional, because there are other credentials. The authenticators refuse unverified certificates.
      requestCert: true,
      rejectUnauthorized: false,
      ALPNProtocols: withHttp2 ? ['h2', 'http/1.1'] : ['http/1.1'],
      handshakeTimeout: HANDSHAKE_MILLIS,
      keepAliveTimeout: KEEP_ALIVE_MILLIS,
      headersTimeout: HEAD_MILLIS,
      // The request handler limits the time of bodies, except those that the proxies of Pods, Services and Nodes forward.
      requestTimeout: 0,
      shouldUpgradeCallback: upgradeFilter(options.catalog),
    },
    (request, response) => void handle(request, response),
  );
  answerClientErrors(server, options.timers);
  const limits = options.limits ?? DEFAULT_LIMITS;
  const http2 = withHttp2
    ? serveHttp2(server, handle, { timers: options.timers, limits, idleMillis: KEEP_ALIVE_MILLIS })
    : undefined;
  const closeIdle = (): void => {
    server.closeIdleConnections();
    http2?.closeIdle();
  };
  const others = createListeners(server, boundConnections(server, limits, { ...options, closeIdle }));
  server.on('upgrade', (request, connection, head) => {
    const socket = connection as Socket;
    void handle(request, answerOn(request, socket), { socket, head });
  });
  // Close each connection that becomes idle while the server closes, so that close() does not wait for it.
  requests.onIdleWhileClosing = closeIdle;
  const opened = options.metrics?.counter(
    'lifepod_apiserver_connections_total',
    'Connections that clients have opened, by protocol.',
    ['protocol'],
  );
  server.on('secureConnection', ({ alpnProtocol }) => opened?.add(1, alpnProtocol === 'h2' ? 'HTTP/2' : 'HTTP/1.1'));
  server.on('tlsClientError', (error) => options.log.debug('TLS handshake failed', { error: error.message }));
  await listen(server, host, options.port);
  const { port } = server.address() as AddressInfo;
  options.log.info('API server is listening', { host, port });
  let closed: Promise<void> | undefined;
  return {
    host,
    port,
    async listenOn(other) {
      await others.open(other, port);
      options.log.info('API server is listening', { host: other, port });
    },
    useCertificates: (pki) => server.setSecureContext(secureContextOf(pki)),
    close: () => (closed ??= close({ server, http2, others }, requests, options.timers)),
  };
}

interface Listening {
  server: Server;
  http2: ReturnType<typeof serveHttp2> | undefined;
  others: Listeners;
}

async function close({ server, http2, others }: Listening, requests: RequestHandler, timers: Timers): Promise<void> {
  const ended = Promise.all([once(server, 'close'), others.close()]);
  server.close();
  http2?.close();
  requests.close();
  const cut = timers.at(timers.now() + CLOSE_GRACE_MILLIS, () => {
    server.closeAllConnections();
    http2?.destroy();
  });
  await ended;
  cut.cancel();
}
