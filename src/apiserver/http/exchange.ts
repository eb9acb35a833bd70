/** One request and its answer: headers and warnings. */
import type { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { UserInfo } from '../../ports/backend.ts';
import type { Outgoing } from './bounds/outgoing.ts';
import type { ResourceRoute } from './routes.ts';

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
  /** Writes the answer in pieces, and counts the bytes that wait for the client. */
  readonly outgoing: Outgoing;
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

/** Resolves when the stream takes more, or is closed. */
export function drained(stream: EventEmitter): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      stream.off('drain', done);
      stream.off('close', done);
      resolve();
    };
    stream.once('drain', done);
    stream.once('close', done);
  });
}

export function createExchange(
  request: IncomingMessage,
  response: ServerResponse,
  rest: Pick<Exchange, 'signal' | 'endWithServer' | 'outgoing' | 'upgrade'>,
): Exchange {
  const url = request.url ?? '/';
  const mark = url.indexOf('?');
  return {
    request,
    response,
    method: request.method ?? 'GET',
    path: mark < 0 ? url : url.slice(0, mark),
    query: new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1)),
    user: { name: 'system:anonymous', groups: ['system:unauthenticated'] },
    warnings: [],
    ...rest,
  };
}
