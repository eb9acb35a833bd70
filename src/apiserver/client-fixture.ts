/** The client of the tests of the API server: HTTP/1.1, or HTTP/2 with LIFEPOD_PROTOCOL=h2, as in the vitest project `http2`. */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { type ClientHttp2Session, type ClientHttp2Stream, connect, type IncomingHttpHeaders } from 'node:http2';
import { type Agent, type RequestOptions, request } from 'node:https';
import { PassThrough, type Writable } from 'node:stream';

export const isHttp2 = process.env['LIFEPOD_PROTOCOL'] === 'h2';

export interface SendOptions {
  /** Determines the certificate of the client. In HTTP/2, the requests of an agent share connections. */
  agent: Agent;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Whether the request has no body. The default is false. */
  isWhole?: boolean;
}

export interface Sending {
  body: Writable;
  continued: Promise<unknown>;
  /**
   * Resolves when the headers of the response have arrived. In HTTP/2, the response has those members of an IncomingMessage that tests use.
   */
  response: Promise<IncomingMessage>;
}

export interface TestClient {
  send(method: string, path: string, options: SendOptions): Sending;
  close(): void;
}

type Server = { host: string; port: number };

export function testClient(server: Server): TestClient {
  const http1 = { send: sendHttp1(server), close: () => undefined };
  if (!isHttp2) return http1;
  const http2 = http2Client(server);
  return {
    ...http2,
    // HTTP/2 has no upgrades.
    send: (...of) => (of[2].headers?.['upgrade'] === undefined ? http2 : http1).send(...of),
  };
}

const sendHttp1 =
  (server: Server): TestClient['send'] =>
  (method, path, given) => {
    const options: RequestOptions = { ...server, method, path, agent: given.agent };
    if (given.headers !== undefined) options.headers = given.headers;
    if (given.signal !== undefined) options.signal = given.signal;
    const body = request(options);
    if (given.headers?.['expect'] !== undefined) body.flushHeaders();
    return sending(
      body,
      once(body, 'response').then(([response]) => response as IncomingMessage),
    );
  };

function sending(body: Writable, response: Promise<IncomingMessage>): Sending {
  const continued = once(body, 'continue');
  continued.catch(() => undefined);
  response.catch(() => undefined);
  return { body, continued, response };
}

/** Per connection: fewer than the server allows. */
const MOST_STREAMS = 50;
/** High enough for tests that send many large bodies, or receive many headers. */
const LIMITS = { maxSessionMemory: 1000, maxHeaderListPairs: 2000 };
const OF_HTTP1 = new Set(['connection', 'transfer-encoding']);

function http2Client({ host, port }: Server): TestClient {
  const all = new Map<Agent, { session: ClientHttp2Session; streams: number }[]>();
  const sessionOf = (agent: Agent) => {
    const own = all.get(agent) ?? [];
    all.set(agent, own);
    const free = own.find(({ session, streams }) => streams < MOST_STREAMS && !session.closed && !session.destroyed);
    // The server closes the connection of an anonymous client with its response.
    if (free !== undefined && agent.options.cert !== undefined) return free;
    const { ca, cert, key } = agent.options;
    const identity = { ca, ...(cert !== undefined && { cert }), ...(key !== undefined && { key }) };
    const session = connect(`https://${host}:${port}`, { ...identity, ...LIMITS });
    session.on('error', () => undefined);
    const opened = { session, streams: 0 };
    own.push(opened);
    return opened;
  };
  return {
    send(method, path, { agent, headers = {}, signal, isWhole = false }) {
      const used = sessionOf(agent);
      const plain = Object.entries(headers).filter(([name]) => !OF_HTTP1.has(name.toLowerCase()));
      const stream = used.session.request(
        { ...Object.fromEntries(plain), ':method': method, ':path': path },
        { endStream: isWhole, ...(signal && { signal }) },
      );
      used.streams += 1;
      stream.once('close', () => {
        used.streams -= 1;
      });
      return sending(
        stream,
        once(stream, 'response').then(([received]) => responseOf(stream, received as IncomingHttpHeaders)),
      );
    },
    close() {
      for (const { session } of [...all.values()].flat()) session.destroy();
    },
  };
}

/** Returns a separate stream, because Node.js drops the unread data of an HTTP/2 stream when the stream is closed. */
function responseOf(stream: ClientHttp2Stream, received: IncomingHttpHeaders): IncomingMessage {
  const headers = Object.fromEntries(Object.entries(received).filter(([name]) => !name.startsWith(':')));
  const body = new PassThrough();
  // Emit `aborted`, like an IncomingMessage. This listener also prevents an unhandled error.
  body.on('error', () => body.emit('aborted'));
  body.once('close', () => stream.destroy());
  stream.on('error', (error) => body.destroy(error));
  stream.pipe(body);
  return Object.assign(body, { statusCode: received[':status'], headers }) as unknown as IncomingMessage;
}
