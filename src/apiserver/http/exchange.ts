/** One request and its answer: headers, bodies, Status errors, warnings, compression. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { UserInfo } from '../../machinery/backend.ts';
import type { Status } from '../../machinery/meta.ts';
import type { ResourceRoute } from './routes.ts';

const gzipAsync = promisify(gzip);

/** Upstream compresses from this size on (endpoints/handlers/responsewriters). */
const GZIP_FROM_BYTES = 128 * 1024;
/** Speed counts more than size between machines that are near each other. */
const GZIP_LEVEL = 1;

/** A connection whose client wants another protocol than HTTP on it. */
export interface Upgrade {
  /**
   * Gives up the answer: from here on the connection is the taker's, and its end no longer aborts the signal. `head`: what
   * came behind the request.
   */
  take(): { socket: Socket; head: Buffer };
}

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly method: string;
  /** As sent, without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Aborts when the client goes away, and when the server closes and does not wait for this request. */
  readonly signal: AbortSignal;
  user: UserInfo;
  /** Absent until it is known, and where no resource is asked for. */
  route?: ResourceRoute;
  /** The server will not wait for this request when it closes: a watch, a log that is followed. */
  endWithServer(): void;
  readonly warnings: string[];
  /** Absent where the request asks for no upgrade that is served. */
  readonly upgrade?: Upgrade;
}

/** Source: upstream's recorder of warnings: what all may have together, and each once that is exceeded. */
const WARNING_CHARS = 4096;
const CUT_WARNING_CHARS = 256;

/**
 * The warnings as they are sent: each once; where they are too long together each is cut, and the last are left out.
 * Source: k8s.io/apiserver/pkg/endpoints/filters/warning.go of v1.33 (behaviour).
 */
export function boundedWarnings(warnings: readonly string[]): string[] {
  const each = [...new Set(warnings)];
  if (each.reduce((length, text) => length + text.length, 0) <= WARNING_CHARS) return each;
  let left = WARNING_CHARS;
  return each
    .map((text) => text.slice(0, CUT_WARNING_CHARS))
    .filter((text) => {
      left -= text.length;
      return left >= 0;
    });
}

/** The code 299, no agent, the text quoted: RFC 7234, section 5.5, as upstream sends it. */
function warningHeader(text: string): string {
  const safe = text.replace(/[\r\n\t]+/g, ' ').replace(/[^\x20-\x7e]/g, '?');
  return `299 - "${safe.replace(/\\/g, '\\\\').replace(/"/g, '\\"')}"`;
}

/** Writes status and headers, warnings included. The body follows with response.write() and end(). */
export function startAnswer(exchange: Exchange, code: number, headers: Record<string, string | number>): void {
  const { response, warnings } = exchange;
  if (warnings.length > 0) response.setHeader('Warning', boundedWarnings(warnings).map(warningHeader));
  response.writeHead(code, headers);
}

export function acceptsGzip(request: IncomingMessage): boolean {
  return /(^|[,\s])gzip(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(String(request.headers['accept-encoding'] ?? ''));
}

/** Answers with the text; large answers to GET are compressed where the client takes it. */
export async function sendBody(exchange: Exchange, code: number, contentType: string, body: string): Promise<void> {
  const { response } = exchange;
  const bytes = Buffer.from(body);
  const headers: Record<string, string | number> = { 'Content-Type': contentType };
  if (bytes.length >= GZIP_FROM_BYTES && exchange.method === 'GET' && acceptsGzip(exchange.request)) {
    const compressed = await gzipAsync(bytes, { level: GZIP_LEVEL });
    startAnswer(exchange, code, {
      ...headers,
      'Content-Encoding': 'gzip',
      Vary: 'Accept-Encoding',
      'Content-Length': compressed.length,
    });
    response.end(compressed);
    return;
  }
  startAnswer(exchange, code, { ...headers, 'Content-Length': bytes.length });
  response.end(bytes);
}

export const sendJson = (exchange: Exchange, code: number, body: unknown): Promise<void> =>
  sendBody(exchange, code, 'application/json', `${JSON.stringify(body)}\n`);

export const sendText = (exchange: Exchange, code: number, text: string): Promise<void> =>
  sendBody(exchange, code, 'text/plain; charset=utf-8', text);

export function sendStatus(exchange: Exchange, status: Status): Promise<void> {
  const retryAfter = status.details?.retryAfterSeconds;
  if (retryAfter !== undefined) exchange.response.setHeader('Retry-After', retryAfter);
  return sendJson(exchange, status.code ?? 500, status);
}

/** Resolves when the response takes more, or is closed. */
export function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done);
      response.off('close', done);
      resolve();
    };
    response.once('drain', done);
    response.once('close', done);
  });
}
