/**
 * Metrics of HTTP requests. Calls of the registry within this process are not counted.
 * Source of the names and labels: v1.33 metrics reference, apiserver_request_*, apiserver_longrunning_requests and
 * apiserver_current_*_requests. The last ones report current values here, but the maximum of the last second upstream.
 */
import type { Metrics } from '../../platform/metrics.ts';
import type { Verb } from '../../ports/request.ts';
import type { Exchange } from './exchange.ts';

const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const RESOURCE_LABELS = ['verb', 'group', 'version', 'resource', 'subresource', 'scope'] as const;
const VERBS: Readonly<Record<Verb, string>> = {
  get: 'GET',
  list: 'LIST',
  watch: 'WATCH',
  create: 'POST',
  update: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
  deletecollection: 'DELETECOLLECTION',
};

export interface RequestMetrics {
  inFlight(exchange: Exchange, change: 1 | -1): void;
  queued(exchange: Exchange, change: 1 | -1): void;
  /** Counts a request that was refused with 429 because too many requests are in flight. */
  dropped(exchange: Exchange): void;
  /** Marks a request that runs until its client or the server ends it, such as a watch or a stream. */
  markLongRunning(exchange: Exchange): void;
  /** `code` is 499 if the client disconnected before the response began. */
  ended(exchange: Exchange, code: number, seconds: number): void;
}

export function createRequestMetrics(metrics: Metrics): RequestMetrics {
  const requests = metrics.counter('apiserver_request_total', 'HTTP requests, by verb, resource and status code.', [
    ...RESOURCE_LABELS,
    'code',
  ]);
  const durations = metrics.histogram(
    'apiserver_request_duration_seconds',
    'Duration of HTTP requests, excluding long-running ones such as watches.',
    RESOURCE_LABELS,
    BUCKETS_SECONDS,
  );
  const running = metrics.gauge(
    'apiserver_longrunning_requests',
    'Open watches, followed logs and streams.',
    RESOURCE_LABELS,
  );
  const inFlight = metrics.gauge(
    'apiserver_current_inflight_requests',
    'Requests in flight, excluding long-running ones, by kind of request: readOnly or mutating.',
    ['request_kind'],
  );
  const inQueue = metrics.gauge(
    'apiserver_current_inqueue_requests',
    'Requests that wait until fewer requests of their user are in flight, by kind of request.',
    ['request_kind'],
  );
  const terminations = metrics.counter(
    'apiserver_request_terminations_total',
    'Requests that were refused because too many requests were in flight.',
    ['component', ...RESOURCE_LABELS, 'code'],
  );
  const longRunning = new WeakSet<Exchange>();
  return {
    inFlight: ({ method }, change) => inFlight.add(change, requestKind(method)),
    queued: ({ method }, change) => inQueue.add(change, requestKind(method)),
    dropped: (exchange) => terminations.add(1, 'apiserver', ...labelsOf(exchange), '429'),
    markLongRunning(exchange) {
      if (longRunning.has(exchange)) return;
      longRunning.add(exchange);
      running.add(1, ...labelsOf(exchange));
    },
    ended(exchange, code, seconds) {
      const labels = labelsOf(exchange);
      requests.add(1, ...labels, String(code));
      if (longRunning.has(exchange)) running.add(-1, ...labels);
      else durations.observe(seconds, ...labels);
    },
  };
}

/**
 * Returns the values of RESOURCE_LABELS. A request without a route is for another path, such as /openapi/v3, or failed before its route was
 * found. An unknown method counts as OTHER, so that clients cannot create label values.
 */
function labelsOf({ route, method }: Exchange): string[] {
  if (route === undefined) return [METHODS.has(method) ? method : 'OTHER', '', '', '', '', ''];
  const { kind, verb, subresource = '', namespace, name } = route;
  const connects = kind.subresources[subresource]?.connects !== undefined;
  const scope =
    name !== undefined || verb === 'create' ? 'resource' : namespace === undefined ? 'cluster' : 'namespace';
  return [connects ? 'CONNECT' : VERBS[verb], kind.group, kind.version, kind.plural, subresource, scope];
}

const requestKind = (method: string): string => (method === 'GET' || method === 'HEAD' ? 'readOnly' : 'mutating');
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
