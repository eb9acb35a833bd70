/**
 * Counts of the requests that come over HTTP. Names and labels: v1.33 metrics reference, apiserver_request_*.
 * What parts of the same process ask of the registry is not among them.
 */
import type { Metrics } from '../../platform/metrics.ts';
import type { Exchange } from './exchange.ts';
import type { Verb } from './routes.ts';

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
  /** The request goes on until its client or the server ends it: a watch, a stream. */
  goesOn(exchange: Exchange): void;
  /** `code` 499: the client went before there was an answer. */
  ended(exchange: Exchange, code: number, seconds: number): void;
}

export function createRequestMetrics(metrics: Metrics): RequestMetrics {
  const requests = metrics.counter(
    'apiserver_request_total',
    'Requests over HTTP, by verb, resource and the code of the answer.',
    [...RESOURCE_LABELS, 'code'],
  );
  const durations = metrics.histogram(
    'apiserver_request_duration_seconds',
    'How long requests took until their answer was out; without those that go on, such as watches.',
    RESOURCE_LABELS,
    BUCKETS_SECONDS,
  );
  const running = metrics.gauge(
    'apiserver_longrunning_requests',
    'Watches, followed logs and streams that are open.',
    RESOURCE_LABELS,
  );
  const going = new WeakSet<Exchange>();
  return {
    goesOn(exchange) {
      if (going.has(exchange)) return;
      going.add(exchange);
      running.add(1, ...labelsOf(exchange));
    },
    ended(exchange, code, seconds) {
      const labels = labelsOf(exchange);
      requests.add(1, ...labels, String(code));
      if (going.has(exchange)) running.add(-1, ...labels);
      else durations.observe(seconds, ...labels);
    },
  };
}

/** Of requests for no resource, as /openapi/v3, the method is all that is told: what clients may make up is no label. */
function labelsOf({ route, method }: Exchange): string[] {
  if (route === undefined) return [METHODS.has(method) ? method : 'OTHER', '', '', '', '', ''];
  const { kind, verb, subresource = '', namespace, name } = route;
  const connects = kind.subresources[subresource]?.connects !== undefined;
  const scope =
    name !== undefined || verb === 'create' ? 'resource' : namespace === undefined ? 'cluster' : 'namespace';
  return [connects ? 'CONNECT' : VERBS[verb], kind.group, kind.version, kind.plural, subresource, scope];
}

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
