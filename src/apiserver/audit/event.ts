/**
 * Formats audit events, one line for each event.
 * Source: audit.k8s.io/v1 Event, and the formats of --audit-log-format, of v1.33.
 */
import type { Status } from '../../machinery/meta.ts';
import { formatMicroTime, type Millis } from '../../machinery/time.ts';
import type { UserInfo } from '../../ports/request.ts';
import type { Level, Stage } from './policy.ts';

export const FORMATS = ['json', 'legacy'] as const;
export type Format = (typeof FORMATS)[number];

/** Annotates an event from which objects or texts are omitted because the event would be too large. */
export const TRUNCATED = 'audit.k8s.io/truncated';

export interface ObjectReference {
  resource?: string;
  namespace?: string;
  name?: string;
  uid?: string;
  apiGroup?: string;
  apiVersion?: string;
  resourceVersion?: string;
  subresource?: string;
}

/** A successful request without a Status has only the code. */
export type ResponseStatus = Pick<Status, 'message' | 'reason' | 'details' | 'code'> & { status?: Status['status'] };

export interface RequestFacts {
  auditID: string;
  requestURI: string;
  verb: string;
  /** Absent if the authentication has failed. */
  user?: UserInfo;
  sourceIPs?: readonly string[];
  userAgent?: string;
  /** Absent for requests that are not for a resource. */
  objectRef?: ObjectReference;
  received: Millis;
}

export interface AuditEvent extends RequestFacts {
  level: Level;
  stage: Stage;
  impersonatedUser?: UserInfo;
  responseStatus?: ResponseStatus;
  /** The objects as JSON. */
  requestObject?: string;
  responseObject?: string;
  /** The time at which the request reached the stage. */
  at: Millis;
  annotations: ReadonlyMap<string, string>;
}

/** Longer values are truncated. */
const MAX_ANNOTATION_CHARS = 16 * 1024;

const userOf = ({ name, uid, groups, extra }: UserInfo) => ({
  username: name || undefined,
  uid: uid || undefined,
  groups: groups.length === 0 ? undefined : groups,
  extra,
});

/** Formats the Status like Go: with `metadata`, without empty texts, and with Go's order of fields. */
const statusOf = ({ status, message, reason, details, code }: ResponseStatus) => ({
  metadata: {},
  status,
  message: message || undefined,
  reason: reason || undefined,
  details,
  code,
});

/** Returns JSON without a line break. The fields have the same order as in Go. */
export function jsonText(event: AuditEvent): string {
  const { level, auditID, stage, requestURI, verb, user, impersonatedUser, sourceIPs, userAgent } = event;
  const { objectRef, responseStatus, requestObject, responseObject, annotations } = event;
  const head = JSON.stringify({
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level,
    auditID,
    stage,
    requestURI,
    verb: verb || undefined,
    user: user === undefined ? {} : userOf(user),
    impersonatedUser: impersonatedUser && userOf(impersonatedUser),
    sourceIPs,
    userAgent,
    objectRef,
    responseStatus: responseStatus && statusOf(responseStatus),
  });
  const objects = [
    ...(requestObject === undefined ? [] : [`,"requestObject":${requestObject}`]),
    ...(responseObject === undefined ? [] : [`,"responseObject":${responseObject}`]),
  ];
  const tail = JSON.stringify({
    requestReceivedTimestamp: formatMicroTime(event.received),
    stageTimestamp: formatMicroTime(event.at),
    annotations: annotations.size === 0 ? undefined : shown(annotations),
  });
  return `${head.slice(0, -1)}${objects.join('')},${tail.slice(1)}`;
}

const shown = (annotations: ReadonlyMap<string, string>): Record<string, string> =>
  Object.fromEntries([...annotations].sort().map(([key, value]) => [key, value.slice(0, MAX_ANNOTATION_CHARS)]));

const NONE = '<none>';
const quoted = (text: string): string => JSON.stringify(text);
const listed = (texts: readonly string[]): string => (texts.length === 0 ? NONE : texts.map(quoted).join(','));

export function legacyText(event: AuditEvent): string {
  const { user, impersonatedUser, sourceIPs = [], objectRef, responseStatus } = event;
  const fields: [string, string][] = [
    ['id', quoted(event.auditID)],
    ['stage', quoted(event.stage)],
    ['ip', quoted(sourceIPs[0] ?? '<unknown>')],
    ['method', quoted(event.verb)],
    ['user', quoted(user?.name || NONE)],
    ['groups', listed(user?.groups ?? [])],
    ['as', quoted(impersonatedUser?.name ?? NONE)],
    ['asgroups', listed(impersonatedUser?.groups ?? [])],
    ['user-agent', quoted(event.userAgent ?? '')],
    ['namespace', quoted(objectRef?.namespace || NONE)],
    ['uri', quoted(event.requestURI)],
    ['response', quoted(responseStatus === undefined ? '<deferred>' : String(responseStatus.code ?? 0))],
  ];
  return `${formatMicroTime(event.received)} AUDIT: ${fields.map(([name, value]) => `${name}=${value}`).join(' ')}`;
}
