/**
 * Records one request: collects the facts that its handlers report, and adds an event to the log for each stage that the policy does not
 * omit. There is at most one event of each stage, and none after ResponseComplete or Panic.
 *
 * Source: WithAudit and WithFailedAuthenticationAudit of k8s.io/apiserver/pkg/endpoints/filters, and pkg/audit/request.go, of v1.33
 * (behavior and wording).
 */
import type { KubeList, KubeObject, Status } from '../../machinery/meta.ts';
import { internalError } from '../../machinery/status.ts';
import { formatDuration, type Millis } from '../../machinery/time.ts';
import type { UserInfo } from '../../ports/request.ts';
import type { Representation } from '../representation/representation.ts';
import { type AuditEvent, type RequestFacts, type ResponseStatus, TRUNCATED } from './event.ts';
import type { ObjectRoom } from './object-room.ts';
import type { Stage } from './policy.ts';
import type { AuditConfig } from './policy-rules.ts';
import type { Sink } from './sink.ts';

/** The event of a slower request has an annotation with the duration. */
const SLOW_MILLIS = 500;

const CLOSED_EARLY: ResponseStatus = { status: 'Success', message: 'Connection closed early', code: 200 };

export interface RequestAuditOptions {
  facts: RequestFacts;
  config: AuditConfig;
  /** Whether the response may take as long as the client wants, as for a watch. Such a request has the stage ResponseStarted. */
  isLongRunning: boolean;
  annotations: Map<string, string>;
  sink: Sink;
  room: ObjectRoom;
  now(): Millis;
  /** Called if the request is refused because its first event is lost. */
  onRefused(): void;
}

export class RequestAudit {
  readonly #options: RequestAuditOptions;
  readonly #facts: RequestFacts;
  #impersonated: UserInfo | undefined;
  #status: ResponseStatus | undefined;
  #requestObject: string | undefined;
  #responseObject: string | undefined;
  #hasStarted = false;
  #hasPanicked = false;
  #isComplete = false;
  /** After a failed authentication, the event of the stage ResponseStarted is the only event of the request. */
  #isUnauthenticated = false;
  #heldBytes = 0;
  #last: Promise<boolean> | undefined;

  constructor(options: RequestAuditOptions) {
    this.#options = options;
    this.#facts = options.facts;
  }

  /**
   * Returns undefined if the request need not wait for the event. Otherwise, resolves when the event is written or lost, and rejects with
   * 500 InternalError if it is lost and the mode is blocking-strict.
   */
  received(): Promise<void> | undefined {
    return this.#add('RequestReceived')?.then((isWritten) => {
      if (isWritten || !this.#options.sink.isStrict) return;
      this.#isComplete = true;
      this.#options.onRefused();
      throw internalError('failed to store audit event');
    });
  }

  /** `message`: names the credentials that failed. */
  unauthenticated(message: string): void {
    this.#status = { message };
    this.#isUnauthenticated = true;
  }

  impersonates(user: UserInfo): void {
    this.#impersonated = user;
  }

  /** Records the object in the body of the request, without defaults. */
  sent(object: KubeObject): void {
    const { objectRef = {} } = this.#facts;
    const { name, namespace, uid, resourceVersion } = textsOf(object.metadata);
    objectRef.namespace ??= namespace;
    objectRef.name ??= name;
    objectRef.uid ??= uid;
    objectRef.resourceVersion ??= resourceVersion;
    if (this.#records('Request')) this.#requestObject = this.#hold([JSON.stringify(this.#shown(object))]);
  }

  /** Records a body that is not an object with metadata: a patch or DeleteOptions. */
  sentOther(body: unknown): void {
    if (this.#records('Request')) this.#requestObject = this.#hold([JSON.stringify(body)]);
  }

  /**
   * Records the response to a request that succeeded. Resolves when it is recorded; returns undefined if the response need not wait for
   * that.
   */
  answered(answer: KubeObject | Status | KubeList, representation: () => Representation): Promise<void> | undefined {
    if (isStatus(answer)) this.#setStatus(answer);
    return this.#records('RequestResponse') ? this.#recordAnswer(answer, representation()) : undefined;
  }

  async #recordAnswer(answer: KubeObject | Status | KubeList, representation: Representation): Promise<void> {
    const parts =
      'items' in answer
        ? await representation.list({ ...answer, items: answer.items.map((item) => this.#shown(item)) })
        : representation.object(isStatus(answer) ? answer : this.#shown(answer));
    this.#responseObject = this.#hold(parts as Iterable<string>);
  }

  failed(status: Status): void {
    this.#setStatus(status);
    if (this.#records('RequestResponse')) this.#responseObject = this.#hold([JSON.stringify(status)]);
  }

  /** Records an unexpected failure. The response does not contain the message of the error. */
  panicked(error: unknown): void {
    this.#hasPanicked = true;
    const message = `APIServer panic'd: ${error instanceof Error ? error.message : String(error)}`;
    this.#status = { status: 'Failure', reason: 'InternalError', message, code: 500 };
  }

  started(code: number): void {
    if (this.#hasStarted || this.#isComplete) return;
    this.#hasStarted = true;
    this.#status = { ...this.#status, code };
    if (this.#options.isLongRunning || this.#isUnauthenticated) this.#add('ResponseStarted');
  }

  /**
   * Records that the response is complete, unless that is already recorded. Resolves when the response may end, to whether the last event
   * is written. Returns undefined if the response may end at once.
   */
  complete(): Promise<boolean> | undefined {
    if (this.#isComplete) return this.#last;
    this.#isComplete = true;
    if (!this.#isUnauthenticated) this.#addLast();
    this.#options.room.leave(this.#heldBytes);
    return this.#last;
  }

  #addLast(): void {
    if (this.#status === undefined) {
      this.#status = CLOSED_EARLY;
      if (this.#options.isLongRunning) this.#add('ResponseStarted');
    }
    const { annotations, now } = this.#options;
    const millis = now() - this.#facts.received;
    if (millis > SLOW_MILLIS) annotations.set('apiserver.latency.k8s.io/total', formatDuration(Math.round(millis)));
    this.#add(this.#hasPanicked ? 'Panic' : 'ResponseComplete');
  }

  #add(stage: Stage): Promise<boolean> | undefined {
    const { config, sink, annotations, now } = this.#options;
    if (config.omitStages.has(stage)) return undefined;
    const event: AuditEvent = {
      ...this.#facts,
      level: config.level,
      stage,
      impersonatedUser: this.#impersonated,
      responseStatus: this.#status,
      requestObject: this.#requestObject,
      responseObject: this.#responseObject,
      at: stage === 'RequestReceived' ? this.#facts.received : now(),
      annotations,
    };
    this.#last = sink.add(event);
    return this.#last;
  }

  #records(level: 'Request' | 'RequestResponse'): boolean {
    const own = this.#options.config.level;
    // After the last event, an object would never be written. Like upstream, record objects only of requests for resources.
    if (this.#isComplete) return false;
    return this.#facts.objectRef !== undefined && (own === 'RequestResponse' || own === level);
  }

  #setStatus({ status, message, reason, details, code }: Status): void {
    // The kinds of the failed credentials are more informative than the message for the client.
    const shown = this.#isUnauthenticated ? this.#status?.message : message;
    this.#status = { status, message: shown, reason, details, code };
  }

  #shown<T extends KubeObject>(object: T): T {
    if (!this.#options.config.omitManagedFields || !hasManagedFields(object)) return object;
    const { managedFields, ...metadata } = object.metadata;
    return { ...object, metadata };
  }

  #hold(texts: Iterable<string>): string | undefined {
    const { room, annotations } = this.#options;
    const text = room.join(texts);
    if (text === undefined) annotations.set(TRUNCATED, 'true');
    else this.#heldBytes += text.length;
    return text;
  }
}

const isStatus = (object: KubeObject | Status | KubeList): object is Status =>
  object.kind === 'Status' && object.apiVersion === 'v1';

const hasManagedFields = ({ metadata }: KubeObject): boolean =>
  typeof metadata === 'object' && metadata !== null && metadata.managedFields !== undefined;

/** Keeps only non-empty texts, because the metadata in the body of a request may have values of any type. */
function textsOf(object: unknown): Record<string, string | undefined> {
  const entries = Object.entries(object ?? {}) as [string, unknown][];
  return Object.fromEntries(
    entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1] !== ''),
  );
}
