/**
 * Serves HTTP/2 to clients that choose HTTP/2 by ALPN. Each stream becomes a request and a response with the interfaces of HTTP/1.1. As
 * upstream, an upgrade needs HTTP/1.1.
 *
 * Invariants:
 *  1. A connection has at most MAX_STREAMS requests, and all connections together have at most `limits.requests`, a quarter of which are
 *     only for connections to loopback. A request counts until its stream is closed and its handler has returned, so that a client cannot
 *     start more handlers by resetting its streams.
 *  2. A connection without requests is closed after `idleMillis` (connections.ts), whatever else its client sends.
 *  3. Node.js and nghttp2 limit what clients send besides requests: resets, CONTINUATION frames, settings, pings, empty frames.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { constants, createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { Server } from 'node:https';
import type { TLSSocket } from 'node:tls';
import type { Millis } from '../../../machinery/time.ts';
import type { Timers } from '../../../platform/platform.ts';
import type { Limits } from '../bounds/limits.ts';
import { type Connection, type Connections, createConnections } from './connections.ts';
import { requestOf } from './request.ts';
import { Http2Response } from './response.ts';

/** The limit on requests per connection. Source: the default of --http2-max-streams-per-connection of v1.33. */
const MAX_STREAMS = 100;
/**
 * The part of all requests that connections to other addresses than loopback may have, so that Pods cannot take all requests from the
 * administrator.
 */
const PART_OF_OTHERS = 0.75;
const LOOPBACK = ['127.0.0.1', '::1', '::ffff:127.0.0.1'];
/** The limits on the headers of a request, including their names. Node.js has the same limits for HTTP/1.1. */
const MAX_HEAD_BYTES = 16 * 1024;
const MAX_HEADERS = 1000;
/** Node.js resets a stream whose headers exceed these limits. Headers that exceed only the limits above lead to 431. */
const MOST_HEAD_BYTES = 64 * 1024;
const MOST_HEADERS = 2000;
/** In HTTP/1.1, a header takes these bytes in addition to its name and value. */
const SEPARATOR_BYTES = 4;
/**
 * The limit of Node.js on the memory of a connection: practically none, because Node.js 24 continues to count the output of streams that
 * were reset. The number of streams and the budget for waiting output (outgoing.ts) limit the memory.
 */
const CONNECTION_MEGABYTES = 1_000_000;

/**
 * How much of a body the client may send before the server reads it. With a delay of 10 ms per packet, a body of 900 kB takes 0.7 s, but
 * 1.1 s with the default of HTTP/2, 64 KiB. Source: v1.33 (MaxUploadBufferPerStream).
 */
const STREAM_WINDOW_BYTES = 256 * 1024;
/**
 * How much of the bodies on all streams of a connection together the client may send before the server reads it. This limit does not bound
 * the memory, because Node.js reads the bytes of a connection at once.
 */
const CONNECTION_WINDOW_BYTES = 1024 * 1024;

/** Resolves when the request has been handled, and must not reject. */
type Handle = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

export interface Http2Options {
  timers: Timers;
  limits: Pick<Limits, 'requests'>;
  idleMillis: Millis;
}

/** The server must have been created with the ALPN protocols h2 and http/1.1. */
export function serveHttp2(
  server: Server,
  handle: Handle,
  { timers, limits, idleMillis }: Http2Options,
): Pick<Connections, 'close' | 'closeIdle' | 'destroy'> {
  const connections = createConnections(timers, idleMillis);
  const mostWith = ({ localAddress = '' }: TLSSocket): number =>
    LOOPBACK.includes(localAddress) ? limits.requests : limits.requests * PART_OF_OTHERS;
  const serve = (connection: Connection, stream: ServerHttp2Stream, headers: IncomingHttpHeaders, raw: string[]) => {
    stream.on('error', () => undefined);
    if (stream.destroyed) return;
    if (connections.requests() >= mostWith(connection.socket) || connection.requests >= MAX_STREAMS)
      return stream.close(constants.NGHTTP2_REFUSED_STREAM);
    const refusal = refusalOf(headers, raw);
    if (refusal !== undefined) return stream.respond({ ':status': refusal }, { endStream: true });
    if (headers.expect !== undefined) stream.additionalHeaders({ ':status': 100 });
    connection.begin();
    const closed = new Promise((resolve) => stream.once('close', resolve));
    const request = requestOf(stream, headers, raw, connection.socket);
    const handled = handle(request, new Http2Response(stream, request) as unknown as ServerResponse);
    void Promise.all([closed, handled]).then(() => connection.end());
  };
  const http2 = createServer({
    settings: {
      maxConcurrentStreams: MAX_STREAMS,
      maxHeaderListSize: MOST_HEAD_BYTES,
      initialWindowSize: STREAM_WINDOW_BYTES,
      enablePush: false,
    },
    maxHeaderListPairs: MOST_HEADERS,
    maxSessionMemory: CONNECTION_MEGABYTES,
    // A Pod behind the proxy may repeat a header that should occur only once.
    strictSingleValueFields: false,
  });
  // Ignore the error: Node.js has already closed the connection.
  http2.on('sessionError', () => undefined);
  let accepted: TLSSocket;
  http2.on('session', (session) => {
    session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
    const connection = connections.add(accepted, session);
    session.on('stream', (stream, headers, _flags, raw) =>
      serve(connection, stream, headers, raw as unknown as string[]),
    );
  });
  dispatch(server, (socket) => {
    accepted = socket;
    http2.emit('connection', socket);
  });
  return connections;
}

function dispatch(server: Server, serve: (socket: TLSSocket) => void): void {
  const [serveHttp1] = server.listeners('secureConnection') as ((socket: TLSSocket) => void)[];
  server.removeAllListeners('secureConnection');
  server.on('secureConnection', (socket) => {
    if (socket.alpnProtocol === 'h2') serve(socket);
    else serveHttp1?.call(server, socket);
  });
}

/** Returns the status with which Node.js would refuse the request in HTTP/1.1; undefined if the request is to be handled. */
function refusalOf({ ':path': path, expect }: IncomingHttpHeaders, raw: readonly string[]): number | undefined {
  // Check the size here: a client may ignore the limit that Node.js announces, and Node.js enforces no limit until the client has read it.
  const count = raw.length / 2;
  const bytes = raw.reduce((sum, text) => sum + text.length, count * SEPARATOR_BYTES);
  if (count > MAX_HEADERS || bytes > MAX_HEAD_BYTES) return 431;
  // CONNECT has no path.
  if (path === undefined) return 405;
  return expect === undefined || expect.toLowerCase() === '100-continue' ? undefined : 417;
}
