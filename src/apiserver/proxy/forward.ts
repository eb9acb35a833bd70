/**
 * Forwards a request to a server in a Pod or on a Node, and the response of this server to the client.
 *
 * Invariants:
 *  1. The slower side slows down the faster side; only data in progress is buffered.
 *  2. The end of the client's connection ends the connection to the server, and a broken response breaks the client's connection.
 *  3. Credentials for the API server do not reach the server.
 *
 * Source: k8s.io/apimachinery/pkg/util/proxy and httputil.ReverseProxy, as v1.33 uses them (behavior and messages).
 */
import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIPv6, type Socket } from 'node:net';
import { type Duplex, pipeline } from 'node:stream';
import { createDeflate, createGunzip, createGzip, createInflate } from 'node:zlib';
import { serviceUnavailable } from '../../machinery/status.ts';
import { request as httpRequest } from '../../platform/builtins/http.ts';
import type { Timers } from '../../platform/platform.ts';
import type { Exchange } from '../http/exchange.ts';
import { join } from '../streaming/join-connections.ts';
import type { Location } from './locations.ts';
import { htmlRewriter, type Rewriting, rewriteUrl } from './rewrite-urls.ts';

/** Source: the dialer of kube-apiserver's proxy transport. */
const CONNECT_MILLIS = 30_000;

const HOP_BY_HOP = new Set([
  'connection',
  'proxy-connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
/** The names of headers that are meant for the API server itself, and are not forwarded. */
const OF_THE_API_SERVER = /^(authorization|expect|impersonate-.*|x-remote-(user|group|uid|extra-.*))$/;
const CORS = /^access-control-allow-(credentials|headers|methods|origin)$/;

type Headers = Record<string, string[]>;

/** Omits headers that concern only the connection, and headers whose names match `isDropped`. */
function endToEnd({ headersDistinct }: IncomingMessage, isDropped: RegExp): Headers {
  const named = (headersDistinct['connection'] ?? []).flatMap((value) => value.toLowerCase().split(/[\s,]+/));
  const entries = Object.entries(headersDistinct).filter(
    ([name]) => !HOP_BY_HOP.has(name) && !named.includes(name) && !isDropped.test(name),
  );
  return Object.fromEntries(entries.map(([name, values = []]) => [name, values]));
}

export interface Forwarding {
  exchange: Exchange;
  timers: Timers;
  location: Location;
  /** The path of the proxy itself, as the client sent it. */
  prefix: string;
  /** The rest of the path with the query, as the client sent it. */
  rest: string;
}

/** Resolves when the response or the upgraded connection has ended. Rejects with 503 ServiceUnavailable if the server does not respond. */
export async function forward(forwarding: Forwarding): Promise<void> {
  const { exchange } = forwarding;
  exchange.endWithServer();
  const answer = await send(forwarding);
  const { socket } = answer;
  if (socket !== undefined) return joinUpgraded(forwarding, answer.response, socket);
  return sendResponse(forwarding, answer.response);
}

interface Answer {
  response: IncomingMessage;
  /** Present if the server has accepted the upgrade. */
  socket?: Socket;
}

const hostOf = ({ ip, port }: Location): string =>
  `${isIPv6(ip) ? `[${ip}]` : ip}${port === undefined ? '' : `:${port}`}`;

async function send({ exchange, timers, location, prefix, rest }: Forwarding): Promise<Answer> {
  const { request, signal, upgrade } = exchange;
  const { scheme, ip, port = scheme === 'https' ? '443' : '80' } = location;
  const dial = `dial tcp ${hostOf({ ...location, port })}`;
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) {
    throw unreachable(`dial tcp: lookup tcp/${port}: unknown port`);
  }
  const headers = endToEnd(request, OF_THE_API_SERVER);
  const before = headers['x-forwarded-for'] ?? [];
  const path = rest.startsWith('/') ? rest : `/${rest}`;
  headers['x-forwarded-for'] = [[...before, request.socket.remoteAddress ?? ''].join(', ')];
  headers['x-forwarded-uri'] = [`${prefix}${path.replace(/\?.*$/s, '')}`];
  const chunked = request.headers['transfer-encoding'] !== undefined;
  if (chunked) headers['transfer-encoding'] = ['chunked'];
  headers['connection'] = [upgrade === undefined ? 'close' : 'Upgrade'];
  if (upgrade !== undefined) headers['upgrade'] = [request.headers.upgrade ?? ''];
  const outgoing = (scheme === 'https' ? httpsRequest : httpRequest)({
    host: ip,
    port: Number(port),
    method: exchange.method,
    path,
    // Node.js accepts no list for Host.
    headers: { ...headers, ...(request.headers.host === undefined ? {} : { host: request.headers.host }) },
    setHost: false,
    agent: false,
    // Like upstream's client, accept header lines that end only with LF, as CGI scripts write them. This is safe, because the connection
    // carries no other response.
    insecureHTTPParser: true,
    // Like kube-apiserver's proxy transport, do not verify the certificates of Pods.
    rejectUnauthorized: false,
    signal,
  });
  const late = timers.at(timers.now() + CONNECT_MILLIS, () => outgoing.destroy(new Error(`${dial}: i/o timeout`)));
  outgoing.once('socket', (socket) => socket.once('connect', () => late.cancel()));
  outgoing.once('close', () => late.cancel());
  const answered = firstAnswer(outgoing);
  // A server may respond before it has read the whole body, and close the connection. The response counts, not the failed write.
  outgoing.on('error', () => undefined);
  if (chunked || request.headers['content-length'] !== undefined) request.pipe(outgoing);
  else outgoing.end();
  try {
    return await answered;
  } catch (error) {
    throw unreachable(failureText(error as NodeJS.ErrnoException, dial));
  }
}

const unreachable = (text: string) => serviceUnavailable(`error trying to reach service: ${text}`);

const DIAL_ERRORS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connect: connection refused',
  EHOSTUNREACH: 'connect: no route to host',
  ENETUNREACH: 'connect: network is unreachable',
  ETIMEDOUT: 'connect: connection timed out',
};

function failureText({ code = '', message }: NodeJS.ErrnoException, dial: string): string {
  if (DIAL_ERRORS[code] !== undefined) return `${dial}: ${DIAL_ERRORS[code]}`;
  return code === 'ECONNRESET' ? 'EOF' : message;
}

function firstAnswer(outgoing: ReturnType<typeof httpRequest>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    outgoing.once('response', (response) => resolve({ response }));
    outgoing.once('upgrade', (response, socket: Socket, head) => {
      if (head.length > 0) socket.unshift(head);
      resolve({ response, socket });
    });
    outgoing.once('error', reject);
  });
}

function rewriters({ headers }: IncomingMessage, rewriting: Rewriting): Duplex[] {
  const type = (headers['content-type'] ?? '').split(';', 1)[0]?.trim();
  if (type !== 'text/html' || headers.location !== undefined) return [];
  switch (headers['content-encoding'] ?? '') {
    case '':
      return [htmlRewriter(rewriting)];
    case 'gzip':
      return [createGunzip(), htmlRewriter(rewriting), createGzip()];
    case 'deflate':
      return [createInflate(), htmlRewriter(rewriting), createDeflate()];
    default:
      return [];
  }
}

async function sendResponse({ exchange, location, prefix }: Forwarding, received: IncomingMessage): Promise<void> {
  const { request, response, outgoing } = exchange;
  const rewriting = { prefix, hosts: [hostOf(location), request.headers.host ?? ''] };
  const steps = exchange.method === 'HEAD' ? [] : rewriters(received, rewriting);
  const headers = endToEnd(received, CORS);
  if (headers['location'] !== undefined)
    headers['location'] = headers['location'].map((url) => rewriteUrl(url, rewriting));
  if (steps.length > 0) delete headers['content-length'];
  for (const [name, values] of Object.entries(headers)) response.appendHeader(name, values);
  response.writeHead(received.statusCode ?? 502);
  response.flushHeaders();
  // pipeline() destroys all its streams when one of them fails; the loop below then fails with the same error.
  const body = steps.length === 0 ? received : (pipeline([received, ...steps], () => undefined) as unknown as Duplex);
  try {
    for await (const chunk of body) {
      if (!outgoing.write(chunk)) await outgoing.ready();
      if (response.destroyed) break;
    }
    if (!response.destroyed) outgoing.end();
  } catch {
    // The response has begun, so only a broken connection shows the client that the response is incomplete.
    response.destroy();
  } finally {
    received.destroy();
  }
}

async function joinUpgraded(
  { exchange, timers }: Forwarding,
  received: IncomingMessage,
  backend: Socket,
): Promise<void> {
  const { upgrade, signal } = exchange;
  backend.on('error', () => undefined);
  if (upgrade === undefined) {
    backend.destroy();
    throw unreachable('the server switched protocols without a request for it');
  }
  const { socket: client, head } = upgrade.take();
  const headers = { ...endToEnd(received, CORS), connection: ['Upgrade'], upgrade: [received.headers.upgrade ?? ''] };
  const lines = Object.entries(headers).flatMap(([name, values]) => values.map((value) => `${name}: ${value}`));
  client.write(`${['HTTP/1.1 101 Switching Protocols', ...lines].join('\r\n')}\r\n\r\n`, 'latin1');
  // The client may already have ended its side of the connection, so client.unshift() cannot be used.
  if (head.length > 0) backend.write(head);
  await join(client, backend, timers, signal, {
    fromClient: (chunk) => void (backend.writable && backend.write(chunk)),
    fromRuntime: (chunk) => void (client.writable && client.write(chunk)),
    replied: async () => undefined,
    failed: () => undefined,
  });
}
