/** One request with its response: parses the request's URL, and writes the status, headers and warnings of the response. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { RequestContext, UserInfo } from '../../ports/request.ts';
import type { RequestAudit } from '../audit/request-audit.ts';
import type { Outgoing } from './bounds/outgoing.ts';
import type { ResourceRoute } from './routes.ts';

/** A connection on which the client requests a protocol other than HTTP. */
export interface Upgrade {
  /**
   * Hands the connection over to the caller. Afterwards, the response cannot be used, and the end of the connection does not abort
   * the signal of the exchange. `head`: the bytes after the request that have already been read.
   */
  take(): { socket: Socket; head: Buffer };
  /** Like take(), for a connection whose messages are the response: the end of the connection still aborts the signal. */
  takeToAnswer(): { socket: Socket; head: Buffer };
}

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly method: string;
  /** The path as the client sent it (percent-encoded), without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Aborts when the response or its connection closes, unless take() was called, and when the closing server ends the request. */
  readonly signal: AbortSignal;
  user: UserInfo;
  /** The route of the request; absent before the route is resolved, and for requests that are not for a resource. */
  route?: ResourceRoute;
  /** The annotations for the audit event of the request. */
  readonly audit: Map<string, string>;
  /** Records the request in the audit log. Absent if the request is not recorded. */
  auditing?: RequestAudit;
  /** Marks the request as long-running, such as a watch or a followed log: the server's close() ends it instead of waiting for it. */
  endWithServer(): void;
  /** Whether the client may read the last bytes of the response as late as it wants, as in a pager. */
  mayPause: boolean;
  readonly warnings: string[];
  /** Writes the response in pieces, and counts the bytes that wait for the client. */
  readonly outgoing: Outgoing;
  /** The connection, if the client requests an upgrade that the server supports; otherwise absent. */
  readonly upgrade?: Upgrade;
}

/**
 * The limit on all warnings together. If the warnings exceed the limit, each of them is truncated to CUT_WARNING_CHARS.
 * Source: upstream's warning recorder.
 */
const WARNING_CHARS = 4096;
const CUT_WARNING_CHARS = 256;

/**
 * Returns the warnings without duplicates. If they are together longer than WARNING_CHARS, truncates each of them, and drops the last
 * ones that still do not fit.
 * Source: k8s.io/apiserver/pkg/endpoints/filters/warning.go of v1.33 (behavior).
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

/** Returns a Warning header like upstream's: the code 299, the agent "-" and the quoted text. Format: RFC 7234, section 5.5. */
function warningHeader(text: string): string {
  const safe = text.replace(/[\r\n\t]+/g, ' ').replace(/[^\x20-\x7e]/g, '?');
  return `299 - "${safe.replace(/\\/g, '\\\\').replace(/"/g, '\\"')}"`;
}

/** Writes the status and the headers of the response, including warnings. The caller then writes the body and ends the response. */
export function startAnswer(exchange: Exchange, code: number, headers: Record<string, string | number>): void {
  const { response, warnings } = exchange;
  if (warnings.length > 0) response.setHeader('Warning', boundedWarnings(warnings).map(warningHeader));
  response.writeHead(code, headers);
}

export function acceptsGzip(request: IncomingMessage): boolean {
  return /(^|[,\s])gzip(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(String(request.headers['accept-encoding'] ?? ''));
}

/**
 * Returns the context of a request for a resource. `given`: fields that replace those of the exchange and the route, such as `resource` and
 * `verb`.
 */
export const requestContext = (
  { user, signal, audit }: Exchange,
  { verb, ref, subresource, namespace, name }: ResourceRoute,
  given: Partial<RequestContext> = {},
): RequestContext => ({
  user,
  source: 'client',
  verb,
  resource: ref,
  subresource,
  namespace,
  name,
  signal,
  audit,
  ...given,
});

const NO_QUERY = new URLSearchParams();

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
    query: mark < 0 ? NO_QUERY : new URLSearchParams(url.slice(mark + 1)),
    user: { name: 'system:anonymous', groups: ['system:unauthenticated'] },
    mayPause: false,
    warnings: [],
    audit: new Map(),
    ...rest,
  };
}
