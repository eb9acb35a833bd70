/**
 * Records one request: collects what its handlers learn about it, and adds an event for each stage that the policy does not omit.
 *
 * Invariants:
 *  1. There is at most one event of each stage, and ResponseComplete or Panic is the last.
 *  2. Below the level Request, no part of an object is recorded besides its name, namespace, UID and resourceVersion.
 *  3. The texts of recorded objects together are limited (ObjectRoom). An object beyond a limit is left out, with an annotation.
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

/** A request that took longer has an annotation with its duration. */
const SLOW_MILLIS = 500;

const CLOSED_EARLY: ResponseStatus = { status: 'Success', message: 'Connection closed early', code: 200 };

export interface RequestAuditOptions {
  facts: RequestFacts;
  config: AuditConfig;
  /** Whether the response may take as long as the client wants, such as that of a watch: it has the stage ResponseStarted. */
  isLongRunning: boolean;
  /** The annotations that the handlers of the request add. */
  annotations: Map<string, string>;
  sink: Sink;
  room: ObjectRoom;
  /** Returns the time, with microseconds. */
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
  /** Whether ResponseStarted is the only event, because the authentication has failed. */
  #isUnauthenticated = false;
  #heldBytes = 0;
  /** The result of the last event that was added. */
  #last: Promise<boolean> | undefined;

  constructor(options: RequestAuditOptions) {
    this.#options = options;
    this.#facts = options.facts;
  }

  /**
   * Records that the request has arrived. Undefined if the request need not wait for this. Rejects with 500 InternalError if the event is lost
   * and the mode requires it.
   */
  received(): Promise<void> | undefined {
    return this.#add('RequestReceived')?.then((isWritten) => {
      if (isWritten || !this.#options.sink.isStrict) return;
      this.#isComplete = true;
      this.#options.onRefused();
      throw internalError('failed to store audit event');
    });
  }

  /** Records the failure of the authentication, which has only the event ResponseStarted. `message`: which credentials failed. */
  unauthenticated(message: string): void {
    this.#status = { message };
    this.#isUnauthenticated = true;
  }

  impersonates(user: UserInfo): void {
    this.#impersonated = user;
  }

  /** Records the object in the body of the request, before defaults. */
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
   * Records the response to a request that succeeded. `representation`: returns that of the response, as JSON. Undefined if the response need
   * not wait for this.
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

  /** Records the Status with which the request failed. */
  failed(status: Status): void {
    this.#setStatus(status);
    if (this.#records('RequestResponse')) this.#responseObject = this.#hold([JSON.stringify(status)]);
  }

  /** Records an unexpected failure. Its text is not in the response. */
  panicked(error: unknown): void {
    this.#hasPanicked = true;
    const message = `APIServer panic'd: ${error instanceof Error ? error.message : String(error)}`;
    this.#status = { status: 'Failure', reason: 'InternalError', message, code: 500 };
  }

  /** Records that the response has begun with the status code. */
  started(code: number): void {
    if (this.#hasStarted || this.#isComplete) return;
    this.#hasStarted = true;
    this.#status = { ...this.#status, code };
    if (this.#options.isLongRunning || this.#isUnauthenticated) this.#add('ResponseStarted');
  }

  /** Records that the response is complete, if this is not recorded yet. Resolves when the response may end; undefined if it may at once. */
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
    // No event follows the last one. Upstream records the objects only of requests for resources.
    if (this.#isComplete) return false;
    return this.#facts.objectRef !== undefined && (own === 'RequestResponse' || own === level);
  }

  #setStatus({ status, message, reason, details, code }: Status): void {
    // The kinds of the failed credentials are more informative than the message for the client.
    const shown = this.#isUnauthenticated ? this.#status?.message : message;
    this.#status = { status, message: shown, reason, details, code };
  }

  /** Returns the object as it is recorded. */
  #shown<T extends KubeObject>(object: T): T {
    if (!this.#options.config.omitManagedFields || !hasManagedFields(object)) return object;
    const { managedFields, ...metadata } = object.metadata;
    return { ...object, metadata };
  }

  /** Returns the concatenated texts; undefined, with an annotation, if they are too long. */
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

/** Returns the values of the object that are texts and not empty: the body of a request may have any values. */
function textsOf(object: unknown): Record<string, string | undefined> {
  const entries = Object.entries(object ?? {}) as [string, unknown][];
  return Object.fromEntries(
    entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1] !== ''),
  );
}
