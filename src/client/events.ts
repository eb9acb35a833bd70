/**
 * Records core/v1 Events. event() never waits and never throws. An Event that repeats a remembered Event increments the count of the stored
 * Event.
 * Source: client-go's tools/record of v1.33 (behavior, names and fields).
 */

import type { CoreV1Event, ObjectReference } from '../api/generated/types.ts';
import { EVENTS } from '../api/resources.ts';
import type { KubeObject } from '../machinery/meta.ts';
import { ApiError, isApiError } from '../machinery/status.ts';
import { formatTime } from '../machinery/time.ts';
import { pause } from '../platform/pause.ts';
import type { Log, Timers } from '../platform/platform.ts';
import { backOffMillis } from './back-off.ts';
import type { Client } from './client.ts';

/** While this many Events are queued, new Events are dropped. */
const MAX_QUEUED = 1000;
const MAX_REMEMBERED = 4096;
/** The API's limit on the field `note` of events.k8s.io/v1, which contains the same text. */
const MAX_MESSAGE_BYTES = 1024;
const CUT = ' ...';
const MAX_TRIES = 12;
const RETRY_BASE_MILLIS = 100;
const RETRY_MAX_MILLIS = 10_000;

export interface EventRecorderOptions {
  /** The component that reports the Events, such as `kubelet` or `default-scheduler`. */
  component: string;
  /** The node on which the component runs; absent for components that do not belong to a node. */
  host?: string;
  timers: Timers;
  log: Log;
  /** Stops the recorder and drops the queued Events. */
  signal?: AbortSignal;
}

export interface EventRecorder {
  /** Queues an Event about the object, or about the part of it at `fieldPath`, such as `spec.initContainers{name}`. */
  event(object: KubeObject, type: 'Normal' | 'Warning', reason: string, message: string, fieldPath?: string): void;
  /** Resolves when every Event queued so far has been stored or dropped. */
  flushed(): Promise<void>;
}

type Draft = Pick<CoreV1Event, 'involvedObject' | 'type' | 'reason' | 'message'> & { at: number };

interface Known {
  name: string;
  count: number;
  firstTimestamp: string;
}

export function createEventRecorder(client: Client, options: EventRecorderOptions): EventRecorder {
  const { timers, log } = options;
  const signal = options.signal ?? new AbortController().signal;
  const store = eventStore(client, options);
  const queue: Draft[] = [];
  let sending: Promise<void> | undefined;

  async function send(draft: Draft): Promise<void> {
    for (let tries = 1; !signal.aborted; tries++) {
      try {
        return await store(draft);
      } catch (error) {
        const fields = { reason: draft.reason, object: draft.involvedObject.name, error: (error as Error).message };
        if (!mayWorkLater(error)) return log.debug('events: the server rejected an event', fields);
        if (tries === MAX_TRIES) return log.warn('events: gave up an event', fields);
        await pause(timers, backOffMillis(tries, RETRY_BASE_MILLIS, RETRY_MAX_MILLIS), signal);
      }
    }
  }

  async function drain(): Promise<void> {
    for (let draft = queue.shift(); draft !== undefined; draft = queue.shift()) await send(draft);
    sending = undefined;
  }

  return {
    event(object, type, reason, message, fieldPath) {
      if (signal.aborted) return;
      if (queue.length >= MAX_QUEUED) {
        log.warn('events: dropped an event, too many are waiting', { reason, object: object.metadata.name });
        return;
      }
      const involvedObject = referenceTo(object, fieldPath);
      queue.push({ involvedObject, type, reason, message: shortened(message), at: timers.now() });
      sending ??= drain();
    },
    flushed: async () => sending,
  };
}

function eventStore(client: Client, { component, host }: EventRecorderOptions): (draft: Draft) => Promise<void> {
  const events = client.resource<CoreV1Event>(EVENTS);
  /** The remembered Events, by the result of identityOf(), the least recently used first. */
  const known = new Map<string, Known>();
  let lastNanos = 0n;

  /** Returns the time in nanoseconds since the epoch, or a slightly later one, so that each returned number is unique. */
  const uniqueNanos = (at: number): bigint => {
    const nanos = BigInt(Math.floor(at)) * 1_000_000n;
    lastNanos = nanos > lastNanos ? nanos : lastNanos + 1n;
    return lastNanos;
  };
  const remember = (key: string, value: Known): void => {
    known.delete(key);
    known.set(key, value);
    if (known.size > MAX_REMEMBERED) known.delete(known.keys().next().value as string);
  };
  /** Increments the count of the stored Event. Resolves to false if the Event no longer exists, usually because it has expired. */
  const increment = async (key: string, before: Known, draft: Draft): Promise<boolean> => {
    const count = before.count + 1;
    remember(key, { ...before, count });
    try {
      const namespace = namespaceOf(draft);
      const change = { count, lastTimestamp: formatTime(draft.at) };
      await events.patch(before.name, namespace, 'application/strategic-merge-patch+json', change);
      return true;
    } catch (error) {
      if (isApiError(error, 'NotFound')) return false;
      remember(key, before);
      throw error;
    }
  };

  return async (draft) => {
    const key = identityOf(draft);
    const before = known.get(key);
    if (before !== undefined && (await increment(key, before, draft))) return;
    // If the stored Event no longer exists, the new Event continues its count.
    const { at, ...content } = draft;
    const time = formatTime(at);
    const count = (before?.count ?? 0) + 1;
    const firstTimestamp = before?.firstTimestamp ?? time;
    const create = (name: string): Promise<CoreV1Event> =>
      events.create({
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { name, namespace: namespaceOf(draft) },
        ...content,
        source: { component, host },
        firstTimestamp,
        lastTimestamp: time,
        count,
        reportingComponent: component,
        reportingInstance: host ?? '',
      });
    for (;;) {
      const name = `${draft.involvedObject.name}.${uniqueNanos(at).toString(16)}`;
      try {
        await create(name);
        return remember(key, { name, count, firstTimestamp });
      } catch (error) {
        // Another component has reported an Event about the same object in the same millisecond.
        if (!isApiError(error, 'AlreadyExists')) throw error;
      }
    }
  };
}

const namespaceOf = ({ involvedObject }: Draft): string => involvedObject.namespace ?? 'default';

const mayWorkLater = (error: unknown): boolean =>
  !(error instanceof ApiError) || error.code >= 500 || error.code === 429;

/** Cuts the message to MAX_MESSAGE_BYTES: thousands of messages are kept in memory, and a probe can print output of any length. */
function shortened(message: string): string {
  const bytes = Buffer.from(message.slice(0, MAX_MESSAGE_BYTES + 1));
  if (bytes.length <= MAX_MESSAGE_BYTES) return message;
  let end = MAX_MESSAGE_BYTES - CUT.length;
  // Do not cut within a UTF-8 character: all its bytes except the first one begin with the bits 10.
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.toString('utf8', 0, end) + CUT;
}

function referenceTo(object: KubeObject, fieldPath: string | undefined): ObjectReference {
  const { name, namespace, uid, resourceVersion } = object.metadata;
  return { kind: object.kind, namespace, name, uid, apiVersion: object.apiVersion, resourceVersion, fieldPath };
}

const identityOf = ({ involvedObject: on, type, reason, message }: Draft): string =>
  JSON.stringify([on.kind, on.namespace, on.name, on.uid, on.apiVersion, on.fieldPath, type, reason, message]);
