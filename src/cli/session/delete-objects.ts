/**
 * Deletes everything that a session has created, step by step, in reverse order of its creation. The session itself calls this function,
 * or, if the session was killed, another session or `lifepod down`.
 *
 * Reads and writes the objects with the label of the session, of the kinds in its record. Writes nothing else.
 * Invariants:
 *  1. An object without the label is never deleted, and neither is an object that has replaced one with the label.
 *  2. A step of plan.ts begins when all objects of the previous step are gone, with the objects that they owned.
 */
import type { Pod } from '../../api/generated/types.ts';
import { PODS } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import { createInformer, type Informer } from '../../client/informer.ts';
import { type KubeObject, uidOf } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import type { Platform } from '../../platform/platform.ts';
import { deletePatiently } from '../delete-patiently.ts';
import { onlyFinalizersLeft } from '../end-pods.ts';
import { deletionStep, ownsPods, SESSION_LABEL, titleOf, WORKLOADS_STEP } from './plan.ts';
import type { RecordedObject, SessionRecord } from './session-records.ts';

export interface Deletion {
  client: Client;
  platform: Platform;
  say(line: string): void;
  /** Aborts when the Pods shall end at once. */
  hurry?: AbortSignal;
  /** Returns the Pods to end at once: those of the session, whatever created them. */
  pods?(): readonly Pod[];
  /** Called when all Pods are gone, before the next step. */
  podsGone?(): Promise<void>;
}

/** The grace period of Pods after `hurry`: their containers get their stop signal, and are killed soon. Source: kubectl delete --now. */
const HURRIED_GRACE_SECONDS = 1;

/** Resolves when everything is deleted. Rejects if the API refuses a delete, or with the reason of `signal`. */
export async function deleteObjects(record: SessionRecord, deletion: Deletion, signal: AbortSignal): Promise<void> {
  const steps = Map.groupBy(record.objects, deletionStep);
  for (const step of [...steps.keys()].sort((a, b) => a - b)) {
    await deleteStep(record.id, steps.get(step) ?? [], deletion, signal);
    if (step === WORKLOADS_STEP) await deletion.podsGone?.();
  }
}

/** The resources of a step in one namespace. */
interface Part {
  first: RecordedObject;
  informer: Informer<KubeObject>;
}

async function deleteStep(
  id: string,
  recorded: readonly RecordedObject[],
  deletion: Deletion,
  signal: AbortSignal,
): Promise<void> {
  const { client, platform, say } = deletion;
  const [done, ending] = [Promise.withResolvers<void>(), new AbortController()];
  const stop = (): void => done.reject(signal.reason);
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  const watching = AbortSignal.any([signal, ending.signal]);
  const open = new Set<string>();
  let synced = false;
  const gone = (object: KubeObject, how: string): void => {
    if (!open.delete(uidOf(object))) return;
    say(`${titleOf(object.kind, object.metadata)} ${how}`);
    if (synced && open.size === 0) done.resolve();
  };
  const remove = (object: KubeObject, part: RecordedObject): void => {
    open.add(uidOf(object));
    deleteOne(object, part, deletion, watching).catch(done.reject);
  };
  const start = (first: RecordedObject): Part => ({
    first,
    informer: createInformer<KubeObject>(
      client.resource(first),
      {
        ...platform,
        namespace: first.namespace,
        labelSelector: `${SESSION_LABEL}=${id}`,
        signal: watching,
      },
      {
        // An object that appears later was created by a request that was under way.
        added: (object) => synced && remove(object, first),
        updated: (object) => {
          if (first.resource === 'pods' && onlyFinalizersLeft(object))
            gone(object, 'ended, but its finalizers keep the object');
        },
        deleted: (object) => gone(object, 'deleted'),
      },
    ),
  });
  deletion.hurry?.addEventListener('abort', () => hurry(deletion, watching), { signal: watching, once: true });
  const parts = [...Map.groupBy(recorded, keyOf).values()].flatMap(([first]) =>
    first === undefined ? [] : [start(first)],
  );
  try {
    await Promise.race([Promise.all(parts.map(({ informer }) => informer.synced)), done.promise]);
    synced = true;
    const found = parts.flatMap(({ first, informer }) => informer.list().map((object) => ({ object, first })));
    for (const { object, first } of reversed(found, recorded)) remove(object, first);
    if (deletion.hurry?.aborted) hurry(deletion, watching);
    if (open.size > 0) await done.promise;
  } finally {
    ending.abort();
    signal.removeEventListener('abort', stop);
  }
}

const keyOf = ({ group, version, resource, namespace }: RecordedObject): string =>
  [group, version, resource, namespace].join('/');

interface Found {
  object: KubeObject;
  first: RecordedObject;
}

/** Sorts the objects in reverse order of their creation. */
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
  { client, platform, say }: Deletion,
  signal: AbortSignal,
): Promise<void> {
  const options = {
    preconditions: { uid: uidOf(object) },
    // The object is removed after those that it owns, so that its removal shows that its Pods are gone.
    propagationPolicy: ownsPods(kind) ? 'Foreground' : 'Background',
  };
  const failed = ({ message }: Error): void =>
    say(`${titleOf(kind, object.metadata)} cannot be deleted yet: ${message}; retrying`);
  await deletePatiently(client.resource(ref), object.metadata, options, {
    timers: platform.timers,
    signal,
    failed,
  }).catch((error: unknown) => {
    // Another object has the name now.
    if (!isApiError(error, 'Conflict')) throw error;
  });
}

/** Gives the Pods of the session a short grace period. Their other deletion waits for them, and reports errors. */
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
