/**
 * Deletes everything that a session has created, step by step, in reverse order of its creation.
 *
 * Reads and writes the objects with the label of the session, of the kinds in its record.
 * Invariants:
 *  1. An object without the label is never deleted, and neither is an object that has replaced one with the label.
 *  2. A step (see deletionStep()) begins when neither the objects of the previous step nor the objects that they owned exist any more, or
 *     after `limitMillis`.
 */
import type { Pod } from '../../api/generated/types.ts';
import { PODS } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import { createInformer, type Informer } from '../../client/informer.ts';
import { type KubeObject, uidOf } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { Platform } from '../../platform/platform.ts';
import { deletePatiently } from '../delete-patiently.ts';
import { onlyFinalizersLeft } from '../end-pods.ts';
import { deletionStep, ownsPods, SESSION_LABEL, titleOf, WORKLOADS_STEP } from './plan.ts';
import type { RecordedObject, SessionRecord } from './session-records.ts';

export interface Deletion {
  client: Client;
  platform: Platform;
  say(line: string): void;
  /** Aborts when the Pods must end at once. */
  hurry?: AbortSignal;
  /** Called once, before the first deletion. */
  begins?(): void;
  /** Returns the Pods that the session or its objects have created. They end quickly after `hurry` aborts. */
  pods?(): readonly Pod[];
  /** How long each step except that of the workloads waits; undefined: without a limit. */
  limitMillis?: number;
  /** The grace period of the Pods that the session has created itself. Undefined: each Pod keeps its own. */
  gracePeriodSeconds?: number;
  /** Called with each of the Pods that exists SLOW_MILLIS after the step of the workloads began. */
  isSlow?(pod: Pod): void;
  /** Called after the step of the workloads. */
  podsGone?(): Promise<void>;
}

/** Most Pods end within this time. */
const SLOW_MILLIS = 5000;

/** The grace period of Pods after `hurry` has aborted. Source: kubectl delete --now. */
const HURRIED_GRACE_SECONDS = 1;

/**
 * Deletes the recorded objects. Resolves when all steps are over, even if some objects still exist. Rejects if the API refuses a delete, or
 * with the reason of `signal`.
 */
export async function deleteObjects(record: SessionRecord, deletion: Deletion, signal: AbortSignal): Promise<void> {
  const steps = Map.groupBy(record.objects, deletionStep);
  let hasBegun = false;
  const begins = (): void => {
    if (!hasBegun) deletion.begins?.();
    hasBegun = true;
  };
  for (const step of [...steps.keys()].sort((a, b) => a - b)) {
    const limits = step === WORKLOADS_STEP ? { limitMillis: undefined } : { isSlow: undefined };
    const limited = { ...deletion, begins, ...limits };
    await deleteStep(record.id, steps.get(step) ?? [], limited, signal);
    if (step === WORKLOADS_STEP) await deletion.podsGone?.();
  }
}

interface Remaining {
  add(object: KubeObject): void;
  remove(object: KubeObject, how: string): void;
  isEmpty(): boolean;
  titles(): string;
}

function createRemaining(say: (line: string) => void, emptied: () => void): Remaining {
  const open = new Map<string, string>();
  return {
    add: (object) => void open.set(uidOf(object), titleOf(object.kind, object.metadata)),
    remove(object, how) {
      if (!open.delete(uidOf(object))) return;
      say(`${titleOf(object.kind, object.metadata)} ${how}`);
      if (open.size === 0) emptied();
    },
    isEmpty: () => open.size === 0,
    titles: () => [...open.values()].join(', '),
  };
}

async function deleteStep(
  id: string,
  recorded: readonly RecordedObject[],
  deletion: Deletion,
  signal: AbortSignal,
): Promise<void> {
  const { platform, say, limitMillis } = deletion;
  const [done, ending] = [Promise.withResolvers<void>(), new AbortController()];
  const stop = (): void => done.reject(signal.reason);
  onAbort(signal, stop);
  const watching = AbortSignal.any([signal, ending.signal]);
  let hasBegun = false;
  const remaining = createRemaining(say, () => hasBegun && done.resolve());
  const remove = (object: KubeObject, part: RecordedObject): void => {
    deletion.begins?.();
    remaining.add(object);
    deleteOne(object, part, deletion, watching).catch(done.reject);
  };
  deletion.hurry?.addEventListener('abort', () => hurry(deletion, watching), { signal: watching, once: true });
  const parts = [...Map.groupBy(recorded, keyOf).values()].flatMap(([first]) => {
    if (first === undefined) return [];
    // A request that was under way when the step began may create an object later.
    const added = (object: KubeObject): void => void (hasBegun && remove(object, first));
    return [{ first, informer: watchPart(id, first, deletion, { added, remaining }, watching) }];
  });
  try {
    await Promise.race([Promise.all(parts.map(({ informer }) => informer.synced)), done.promise]);
    const found = parts.flatMap(({ first, informer }) =>
      informer.list().flatMap((object) => (hasEndedAs(first, object) ? [] : [{ object, first }])),
    );
    for (const { object } of found) remaining.add(object);
    hasBegun = true;
    for (const { object, first } of reversed(found, recorded)) remove(object, first);
    if (deletion.hurry?.aborted) hurry(deletion, watching);
    if (remaining.isEmpty()) return;
    const giveUp = (): void => {
      say(`not deleted yet: ${remaining.titles()}`);
      done.resolve();
    };
    const { isSlow, pods = () => [] } = deletion;
    const slow = isSlow && (() => pods().forEach(isSlow));
    const { timers } = platform;
    const running = [
      ...(limitMillis === undefined ? [] : [timers.at(timers.now() + limitMillis, giveUp)]),
      ...(slow === undefined ? [] : [timers.at(timers.now() + SLOW_MILLIS, slow)]),
    ];
    await done.promise.finally(() => {
      for (const timer of running) timer.cancel();
    });
  } finally {
    ending.abort();
    signal.removeEventListener('abort', stop);
  }
}

function watchPart(
  id: string,
  first: RecordedObject,
  { client, platform, say }: Deletion,
  { added, remaining }: { added(object: KubeObject): void; remaining: Remaining },
  signal: AbortSignal,
): Informer<KubeObject> {
  const selection = { namespace: first.namespace, labelSelector: `${SESSION_LABEL}=${id}` };
  return createInformer<KubeObject>(
    client.resource(first),
    { ...platform, ...selection, signal },
    {
      added,
      updated(object, old) {
        const finalizers = awaited(object);
        if (finalizers !== '' && finalizers !== awaited(old)) {
          say(`${titleOf(object.kind, object.metadata)} waits for its finalizers: ${finalizers}`);
        }
        if (hasEndedAs(first, object)) {
          remaining.remove(object, 'ended, but its finalizers keep the object');
        }
      },
      deleted: (object) => remaining.remove(object, 'deleted'),
    },
  );
}

const hasEndedAs = ({ resource }: RecordedObject, object: KubeObject): boolean =>
  resource === 'pods' && onlyFinalizersLeft(object);

const foreignFinalizers = ({ metadata }: KubeObject): string[] =>
  (metadata.finalizers ?? []).filter((name) => name.includes('/') && !/(?:^|\.)(?:kubernetes|k8s)\.io\//.test(name));

const awaited = (object: KubeObject): string =>
  object.metadata.deletionTimestamp === undefined ? '' : foreignFinalizers(object).join(', ');

const keyOf = ({ group, version, resource, namespace }: RecordedObject): string =>
  [group, version, resource, namespace].join('/');

interface Found {
  object: KubeObject;
  first: RecordedObject;
}

/** Returns the objects in the reverse order of `recorded`, which is the order of their creation. */
export function reversed(found: readonly Found[], recorded: readonly RecordedObject[]): Found[] {
  const placeOf = ({ object, first }: Found): number => {
    const ofKind = (each: RecordedObject): boolean => keyOf(each) === keyOf(first);
    const place = recorded.findIndex((each) => ofKind(each) && each.name === object.metadata.name);
    return place === -1 ? recorded.findIndex((each) => ofKind(each) && each.name === undefined) : place;
  };
  return [...found].sort((a, b) => placeOf(b) - placeOf(a));
}

async function deleteOne(
  object: KubeObject,
  { kind, ...ref }: RecordedObject,
  { client, platform, say, gracePeriodSeconds }: Deletion,
  signal: AbortSignal,
): Promise<void> {
  const options = {
    preconditions: { uid: uidOf(object) },
    ...(kind === 'Pod' ? { gracePeriodSeconds } : {}),
    // With Foreground, the object remains until the server has deleted its dependents, such as Pods.
    propagationPolicy: ownsPods(kind) ? 'Foreground' : 'Background',
  };
  const failed = ({ message }: Error): void =>
    say(`${titleOf(kind, object.metadata)} cannot be deleted yet: ${message}; retrying`);
  await deletePatiently(client.resource(ref), object.metadata, options, {
    timers: platform.timers,
    signal,
    failed,
  }).catch((error: unknown) => {
    // Conflict: an object with another UID has the name now.
    if (!isApiError(error, 'Conflict')) throw error;
  });
}

/** Deletes the Pods again with a short grace period. Ignores errors, because the deletions of deleteStep() continue. */
function hurry({ client, platform, pods = () => [] }: Deletion, signal: AbortSignal): void {
  for (const pod of pods()) {
    const options = { gracePeriodSeconds: HURRIED_GRACE_SECONDS, preconditions: { uid: uidOf(pod) } };
    deletePatiently(client.resource<Pod>(PODS), pod.metadata, options, {
      timers: platform.timers,
      signal,
      failed: () => undefined,
    }).catch(() => undefined);
  }
}

/** Returns the line about the deletion of the session's objects. The record also names objects that were not created. */
export function leftText({ pid, objects }: SessionRecord): string {
  const named = objects.flatMap(({ kind, name }) => (name === undefined ? [] : titleOf(kind, { name })));
  const ofThese = named.length === 0 ? '' : ` of ${named.join(', ')}`;
  const hasPods = objects.some(({ kind }) => kind === 'Pod' || ownsPods(kind));
  const waits = hasPods ? '; this waits until the Pods have ended' : '';
  return `deleting what a session that was interrupted or killed (PID ${pid}) has left${ofThese}${waits}`;
}
