/**
 * Formats and truncates audit events, and queues their lines while the output is busy. The output gets the lines in the order in which they
 * were added. Events that exceed the limits of the queue are dropped and counted.
 *
 * Source: k8s.io/apiserver/plugin/pkg/audit (truncate, buffered, log) and pkg/audit/metrics.go of v1.33 (behavior, names of metrics and
 * plugins).
 */
import type { Millis } from '../../machinery/time.ts';
import { atMost } from '../../platform/at-most.ts';
import type { Metrics } from '../../platform/metrics.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import type { UserInfo } from '../../ports/request.ts';
import { type AuditEvent, type Format, jsonText, legacyText, TRUNCATED } from './event.ts';

/** Source: the default of --audit-log-batch-buffer-size. */
const MAX_EVENTS = 10_000;
const MAX_BYTES = 64 * 1024 * 1024;
/** The total length of the lines that are passed to the output at a time. The last line may exceed it. */
const BATCH_BYTES = 1024 * 1024;
/**
 * A failure counts as ended only if an event is written at least this long after the last lost event: on a full disk, short lines may still
 * fit.
 */
const RECOVERED_MILLIS = 10_000;
const CLOSE_MILLIS = 5_000;

export const MODES = ['batch', 'blocking', 'blocking-strict'] as const;
/**
 * `batch`: requests do not wait for their events. `blocking`: a response ends when its event is written or lost. `blocking-strict`: in
 * addition, a request whose RequestReceived event is lost is refused.
 */
export type Mode = (typeof MODES)[number];

/** The caller awaits each call of append() before the next. */
export interface Output {
  /** Resolves to the number of lines that were written, and to the error if some were not. Never rejects. */
  append(lines: readonly Buffer[]): Promise<{ written: number; error?: Error }>;
  close(): Promise<void>;
}

export interface Truncation {
  maxEventBytes: number;
}

export interface SinkOptions {
  output: Output;
  mode: Mode;
  format: Format;
  /** Undefined: events are not truncated. */
  truncation?: Truncation | undefined;
  /** The default is MAX_BYTES. */
  maxWaitingBytes?: number;
  metrics: Metrics;
  timers: Timers;
  log: Log;
}

export interface Sink {
  readonly isStrict: boolean;
  /**
   * Returns undefined in the mode batch. Otherwise resolves, when the event is written or lost, to whether it is written. An event that is
   * too large counts as written.
   */
  add(event: AuditEvent): Promise<boolean> | undefined;
  /** Resolves when all events are written, or after CLOSE_MILLIS. */
  close(): Promise<void>;
}

interface Waiting {
  line: Buffer;
  settle?: (written: boolean) => void;
}

export function createSink(options: SinkOptions): Sink {
  const { output, mode, maxWaitingBytes = MAX_BYTES, metrics, timers, log } = options;
  const events = metrics.counter(
    'apiserver_audit_event_total',
    'Counter of audit events generated and sent to the audit backend.',
    [],
  );
  const report = lossReporter(metrics, timers, log);
  const encode = encoder(options, report);
  let queue: Waiting[] = [];
  let queuedBytes = 0;
  let writing: Promise<void> | undefined;
  const takeBatch = (): Waiting[] => {
    let bytes = 0;
    let count = 0;
    while (count < queue.length && (count === 0 || bytes < BATCH_BYTES)) bytes += queue[count++]?.line.length ?? 0;
    const batch = queue.slice(0, count);
    queue = queue.slice(count);
    return batch;
  };
  const writeAll = async (): Promise<void> => {
    while (queue.length > 0) {
      const batch = takeBatch();
      const { written, error } = await output.append(batch.map(({ line }) => line));
      for (const [index, { line, settle }] of batch.entries()) {
        queuedBytes -= line.length;
        settle?.(index < written);
      }
      report('log', batch.length - written, error);
    }
    writing = undefined;
  };
  return {
    isStrict: mode === 'blocking-strict',
    add(event) {
      events.add(1);
      const waits = mode !== 'batch';
      const line = encode(event);
      // As upstream, an event that is too large does not count as a failure of the backend.
      if (line === undefined) return waits ? Promise.resolve(true) : undefined;
      if (queue.length >= MAX_EVENTS || queuedBytes + line.length > maxWaitingBytes) {
        report('buffered', 1, new Error('too many audit events wait for the log'));
        return waits ? Promise.resolve(false) : undefined;
      }
      report('buffered', 0);
      queuedBytes += line.length;
      const result = waits ? new Promise<boolean>((settle) => queue.push({ line, settle })) : undefined;
      if (!waits) queue.push({ line });
      writing ??= writeAll();
      return result;
    },
    async close() {
      if (writing !== undefined) await atMost(writing, CLOSE_MILLIS, timers, new AbortController().signal);
      if (writing === undefined) await output.close();
      else log.error('audit events are lost, because the log takes too long', { events: queue.length });
    },
  };
}

type Plugin = 'log' | 'buffered' | 'truncate';
/** `lost` is 0 when the plugin has passed on an event. */
type ReportLoss = (plugin: Plugin, lost: number, error?: Error) => void;

function lossReporter(metrics: Metrics, timers: Timers, log: Log): ReportLoss {
  const errors = metrics.counter(
    'apiserver_audit_error_total',
    'Counter of audit events that failed to be audited properly. Plugin identifies the plugin affected by the error.',
    ['plugin'],
  );
  const failures = new Map<Plugin, { lost: number; lastAt: Millis }>();
  return (plugin, lost, error) => {
    const failure = failures.get(plugin);
    if (lost > 0) {
      errors.add(lost, plugin);
      failures.set(plugin, { lost: (failure?.lost ?? 0) + lost, lastAt: timers.now() });
      if (failure === undefined) log.error('audit events are lost', { plugin, error: error?.message });
    } else if (failure !== undefined && timers.now() - failure.lastAt >= RECOVERED_MILLIS) {
      failures.delete(plugin);
      log.info('audit events are written again', { plugin, lost: failure.lost });
    }
  };
}

/**
 * The limit on the characters of a truncated message, as a fraction of the limit on the bytes of a line. A character takes at most 6 bytes
 * in JSON.
 */
const MESSAGE_SHARE = 1 / 8;

/** Omits the details, which may list many causes. */
function shortStatus(
  { responseStatus }: Pick<AuditEvent, 'responseStatus'>,
  chars: number,
): Pick<AuditEvent, 'responseStatus'> {
  if (responseStatus === undefined) return {};
  const { details, message = '', ...rest } = responseStatus;
  return { responseStatus: { ...rest, message: message.slice(0, chars) } };
}

/** The limit on the characters of each text in an event whose texts are cut, as a fraction of the limit on the bytes of a line. */
const TEXT_SHARE = 1 / 128;

/** Cuts the texts that a client can make long, such as header fields, and omits lists and maps of such texts. */
function headOf(event: AuditEvent, chars: number): AuditEvent {
  const cut = (text: string): string => text.slice(0, chars);
  const cutUser = ({ name, uid }: UserInfo): UserInfo => ({
    name: cut(name),
    groups: [],
    ...(uid && { uid: cut(uid) }),
  });
  const { requestURI, userAgent, user, impersonatedUser, objectRef } = event;
  return {
    ...event,
    annotations: new Map([[TRUNCATED, 'true']]),
    requestURI: cut(requestURI),
    ...(userAgent !== undefined && { userAgent: cut(userAgent) }),
    ...(user && { user: cutUser(user) }),
    ...(impersonatedUser && { impersonatedUser: cutUser(impersonatedUser) }),
    ...(objectRef && {
      objectRef: Object.fromEntries(Object.entries(objectRef).map(([key, text]) => [key, text && cut(text)])),
    }),
    ...shortStatus(event, chars),
  };
}

/**
 * If an event is too large, omits its objects, then most of its message, and then cuts its other texts, so that, unlike upstream, a client
 * cannot avoid the log by a request with a long error or long header fields. The returned function returns undefined if the event is still
 * too large.
 */
function encoder(
  { format, truncation }: Pick<SinkOptions, 'format' | 'truncation'>,
  report: ReportLoss,
): (event: AuditEvent) => Buffer | undefined {
  const textOf = format === 'legacy' ? legacyText : jsonText;
  const lineOf = (event: AuditEvent): Buffer => Buffer.from(`${textOf(event)}\n`);
  if (truncation === undefined) return lineOf;
  const fits = (line: Buffer): boolean => line.length <= truncation.maxEventBytes;
  return (event) => {
    const line = lineOf(event);
    if (fits(line)) return line;
    const { requestObject, responseObject, ...rest } = event;
    const smaller = { ...rest, annotations: new Map([...event.annotations, [TRUNCATED, 'true']]) };
    const shorter = { ...smaller, ...shortStatus(event, truncation.maxEventBytes * MESSAGE_SHARE) };
    const head = (): AuditEvent => headOf(smaller, truncation.maxEventBytes * TEXT_SHARE);
    for (const each of [() => smaller, () => shorter, head]) {
      const truncated = lineOf(each());
      if (fits(truncated)) return truncated;
    }
    report('truncate', 1, new Error('an audit event is too large even after truncating'));
    return undefined;
  };
}
