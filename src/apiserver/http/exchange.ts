import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { RequestContext, UserInfo } from '../../ports/request.ts';
import type { RequestAudit } from '../audit/request-audit.ts';
import type { Outgoing } from './bounds/outgoing.ts';
import type { ResourceRoute } from './routes.ts';

/** A connection on which the client requests a protocol other than HTTP. */
export interface Upgrade {
  /**
   * Hands the connection over to the caller. Afterwards, the response cannot be used, and the end of the connection does not abort the
   * signal of the exchange. `head`: the bytes after the request that have already been read.
   */
  take(): { socket: Socket; head: Buffer };
  /** Like take(), for a connection whose messages are the response: the end of the connection still aborts the signal. */
  takeToAnswer(): { socket: Socket; head: Buffer };
}

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly method: string;
  /** Percent-encoded as sent by the client, without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Aborts when the response or its connection closes, unless take() was called, and when the closing server ends the request. */
  readonly signal: AbortSignal;
  user: UserInfo;
  /** Absent before the route is resolved, and for requests that are not for a resource. */
  route?: ResourceRoute;
  readonly audit: Map<string, string>;
  /** Absent if the audit log does not record the request. */
  auditing?: RequestAudit;
  /** Marks the request as long-running, such as a watch or a followed log: the server's close() ends it instead of waiting for it. */
  endWithServer(): void;
  /** Whether the client may read the last bytes of the response as late as it wants, as in a pager. */
  mayPause: boolean;
  readonly warnings: string[];
  readonly outgoing: Outgoing;
  /** Present if the client requests an upgrade that the server supports. */
  readonly upgrade?: Upgrade;
}

/** Above this limit on all warnings together, each warning is truncated to CUT_WARNING_CHARS. Source: upstream's warning recorder. */
const WARNING_CHARS = 4096;
const CUT_WARNING_CHARS = 256;

/**
 * Returns the warnings without duplicates. If they exceed WARNING_CHARS, truncates them and drops those that still do not fit.
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

/** Format: RFC 7234, section 5.5. */
function warningHeader(text: string): string {
  const safe = text.replace(/[\r\n\t]+/g, ' ').replace(/[^\x20-\x7e]/g, '?');
  return `299 - "${safe.replace(/\\/g, '\\\\').replace(/"/g, '\\"')}"`;
}

/** Writes the status and the headers, including warnings. The caller then writes the body and ends the response. */
export function startAnswer(exchange: Exchange, code: number, headers: Record<string, string | number>): void {
  const { response, warnings } = exchange;
  if (warnings.length > 0) response.setHeader('Warning', boundedWarnings(warnings).map(warningHeader));
  response.writeHead(code, headers);
}

export function acceptsGzip(request: IncomingMessage): boolean {
  return /(^|[,\s])gzip(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(String(request.headers['accept-encoding'] ?? ''));
}

/** `given`: fields that replace those of the exchange and the route. */
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
