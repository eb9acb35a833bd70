/**
 * Decides for each request whether and how it is recorded.
 * Source: "Auditing" of v1.33, and k8s.io/apiserver/pkg/endpoints/filters (behavior).
 */
import { randomUUID } from 'node:crypto';
import type { Millis } from '../../machinery/time.ts';
import type { Metrics } from '../../platform/metrics.ts';
import type { Timers } from '../../platform/platform.ts';
import type { RequestContext, UserInfo } from '../../ports/request.ts';
import { requestAttributes } from '../auth/request-attributes.ts';
import type { Exchange } from '../http/exchange.ts';
import { END_WORKLOADS_PATH } from '../serve-end-workloads.ts';
import { failedAuthentication, headerText, sourceIpsOf, userAgentOf } from './client-facts.ts';
import type { ObjectReference, RequestFacts } from './event.ts';
import { createObjectRoom } from './object-room.ts';
import type { Policy } from './policy.ts';
import { type AuditConfig, type Audited, policyRules } from './policy-rules.ts';
import { RequestAudit } from './request-audit.ts';
import type { Sink } from './sink.ts';

export interface Audit {
  /** Returns undefined if the request is not recorded. `user`: undefined if the authentication has failed. */
  begin(exchange: Exchange, arrival: Arrival, user: UserInfo | undefined): RequestAudit | undefined;
  /** Like begin(), for a call of a component of the same process. `sent`: the URI and the User-Agent that a client would have sent. */
  beginCall(request: RequestContext, sent: Pick<RequestFacts, 'requestURI' | 'userAgent'>): RequestAudit | undefined;
  /** Returns the current time with microsecond precision. */
  now(): Millis;
  /** Resolves when all events are written, or after the time limit of Sink.close(). */
  close(): Promise<void>;
}

export interface Arrival {
  /** Also the value of the header Audit-Id of the response. */
  auditID: string;
  segments: readonly string[];
  received: Millis;
}

export interface AuditOptions {
  policy: Policy;
  sink: Sink;
  metrics: Metrics;
  timers: Timers;
}

/** Source: kube-apiserver's check for long-running requests. */
const LONG_VERBS = ['watch', 'proxy'];
const LONG_SUBRESOURCES = ['attach', 'exec', 'proxy', 'log', 'portforward'];

export function createAudit({ policy, sink, metrics, timers }: AuditOptions): Audit {
  const configOf = policyRules(policy);
  const room = createObjectRoom();
  const levels = metrics.counter(
    'apiserver_audit_level_total',
    'Counter of policy levels for audit events (1 per request).',
    ['level'],
  );
  const refused = metrics.counter(
    'apiserver_audit_requests_rejected_total',
    'Counter of apiserver requests rejected due to an error in audit logging backend.',
    [],
  );
  const now = microsecondClock(timers);
  const start = (
    audited: Audited,
    annotations: Map<string, string>,
    facts: () => RequestFacts,
  ): RequestAudit | undefined => {
    const config: AuditConfig = configOf(audited);
    levels.add(1, config.level);
    if (config.level === 'None') return undefined;
    const onRefused = () => refused.add(1);
    const isLongRunning = runsLong(audited);
    return new RequestAudit({ facts: facts(), config, isLongRunning, annotations, sink, room, now, onRefused });
  };
  return {
    begin(exchange, arrival, user) {
      const attributes = requestAttributes(exchange, arrival.segments);
      const audited: Audited = user === undefined ? attributes : { ...attributes, user };
      const recorder = start(audited, exchange.audit, () => factsOf(exchange, arrival, audited));
      if (user === undefined) recorder?.unauthenticated(failedAuthentication(exchange.request));
      return recorder;
    },
    beginCall(request, sent) {
      const audited = auditedCall(request);
      const objectRef = referenceOf(audited, request.resource.version);
      const facts = () => ({
        auditID: randomUUID(),
        ...sent,
        verb: audited.verb,
        user: request.user,
        objectRef,
        received: now(),
      });
      return start(audited, request.audit, facts);
    },
    now,
    close: () => sink.close(),
  };
}

/** Adds fractions of milliseconds to the time of `timers`, which has none. The clock never goes back. */
function microsecondClock(timers: Timers): () => Millis {
  let last = 0;
  return () => {
    const exact = performance.timeOrigin + performance.now();
    last = Math.max(last, exact + timers.now() - Math.floor(exact));
    return last;
  };
}

const runsLong = (audited: Audited): boolean =>
  'path' in audited
    ? audited.path === END_WORKLOADS_PATH
    : LONG_VERBS.includes(audited.verb) || LONG_SUBRESOURCES.includes(audited.subresource ?? '');

function factsOf({ request }: Exchange, { auditID, segments, received }: Arrival, audited: Audited): RequestFacts {
  return {
    auditID,
    requestURI: headerText(request.url ?? '/'),
    verb: audited.verb,
    ...(audited.user === undefined ? {} : { user: audited.user }),
    sourceIPs: sourceIpsOf(request),
    userAgent: userAgentOf(request),
    ...('path' in audited
      ? {}
      : { objectRef: referenceOf(audited, segments[0] === 'api' ? segments[1] : segments[2]) }),
    received,
  };
}

const auditedCall = ({ user, verb, resource: ref, subresource, namespace, name }: RequestContext): AuditedResource => ({
  user,
  verb,
  group: ref.group,
  resource: ref.resource,
  subresource,
  namespace: ref.group === '' && ref.resource === 'namespaces' ? name : namespace,
  name,
});

type AuditedResource = Exclude<Audited, { path: string }>;

/** Omits empty texts, like Go. */
const referenceOf = (
  { group, resource, subresource, namespace, name }: AuditedResource,
  version: string | undefined,
): ObjectReference => ({
  resource: resource || undefined,
  namespace: namespace || undefined,
  name: name || undefined,
  uid: undefined,
  apiGroup: group || undefined,
  apiVersion: version || undefined,
  resourceVersion: undefined,
  subresource: subresource || undefined,
});
