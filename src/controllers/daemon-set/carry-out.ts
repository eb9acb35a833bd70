/** Carries out decisions about DaemonSets. Source: syncNodes of pkg/controller/daemon/daemon_controller.go, and update.go, of v1.33 (behavior). */
import { isDeepStrictEqual } from 'node:util';
import { TEMPLATE_GENERATION } from '../../api/apps/v1/daemon-set/index.ts';
import type { ControllerRevision, DaemonSet, Pod } from '../../api/generated/types.ts';
import type { ResourceClient } from '../../client/client.ts';
import type { Informer } from '../../client/informer.ts';
import { uidOf } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import { unmarkPod } from '../ownership/deletion-mark.ts';
import { controllerUids, isControlledBy } from '../ownership/owner.ts';
import { createPod, deletePod, isNamespaceTerminating, type PodWriter, slowStart } from '../ownership/pods-of-owner.ts';
import { GENERATION_LABEL, HASH } from './daemons.ts';
import { type History, hasContentOf, hashOf, newRevision } from './history.ts';
import { podFor } from './placement.ts';
import type { Decision } from './reconcile.ts';

export interface DaemonWriter extends PodWriter {
  daemonSetClient: ResourceClient<DaemonSet>;
  podClient: ResourceClient<Pod>;
  revisionClient: ResourceClient<ControllerRevision>;
  daemonSets: Informer<DaemonSet>;
  pods: Informer<Pod>;
  revisions: Informer<ControllerRevision>;
}

/**
 * Creates the revision of the current template or gives it its number, and deletes duplicates of it once no Pod has their hash. Returns the
 * revision; undefined if a change of the DaemonSet or of the revisions causes another attempt.
 */
export async function ensureRevision(
  writer: DaemonWriter,
  daemonSet: DaemonSet,
  history: History,
): Promise<ControllerRevision | undefined> {
  const { current, duplicates, revision } = history;
  if (current === undefined) return createRevision(writer, daemonSet, revision);
  for (const duplicate of duplicates) await dropDuplicate(writer, daemonSet, duplicate, hashOf(current));
  if (current.revision === revision) return current;
  const updated = await unlessChanged(writer.revisionClient.update({ ...current, revision }));
  await writer.revisions.reached(updated?.metadata.resourceVersion);
  return updated;
}

async function createRevision(
  writer: DaemonWriter,
  daemonSet: DaemonSet,
  number: number,
): Promise<ControllerRevision | undefined> {
  const revision = newRevision(daemonSet, number);
  const { name, namespace } = revision.metadata;
  try {
    const created = await writer.revisionClient.create(revision);
    await writer.revisions.reached(created.metadata.resourceVersion);
    return created;
  } catch (error) {
    if (isNamespaceTerminating(error)) return undefined;
    if (!isApiError(error, 'AlreadyExists')) throw error;
  }
  const existing = await writer.revisionClient.get(name, namespace);
  // The copy did not contain the revision yet.
  if (isControlledBy(existing, daemonSet) && hasContentOf(existing, daemonSet)) return existing;
  const collisionCount = (daemonSet.status?.collisionCount ?? 0) + 1;
  const status = { ...emptyStatus, ...daemonSet.status, collisionCount };
  await unlessChanged(writer.daemonSetClient.updateStatus({ ...daemonSet, status }));
  return undefined;
}

const emptyStatus = { currentNumberScheduled: 0, numberMisscheduled: 0, desiredNumberScheduled: 0, numberReady: 0 };

async function dropDuplicate(
  { podClient, pods, revisionClient }: DaemonWriter,
  daemonSet: DaemonSet,
  duplicate: ControllerRevision,
  hash: string,
): Promise<void> {
  for (const { metadata } of [...pods.by(controllerUids, uidOf(daemonSet))]) {
    if (metadata.labels?.[HASH] !== hashOf(duplicate)) continue;
    const change = { metadata: { uid: metadata.uid, labels: { [HASH]: hash } } };
    await unlessChanged(podClient.patch(metadata.name, metadata.namespace, 'application/merge-patch+json', change));
  }
  const { name, namespace, uid } = duplicate.metadata;
  await unlessChanged(revisionClient.delete(name, namespace, { preconditions: { uid } }));
}

/** Creates and deletes Pods, then writes the status. Resolves once the local copies contain the writes; rejects with the first error. */
export async function carryOut(
  writer: DaemonWriter,
  daemonSet: DaemonSet,
  hash: string,
  decision: Decision,
): Promise<void> {
  for (const { type, reason, message } of decision.events) writer.events.event(daemonSet, type, reason, message);
  const failures: unknown[] = [];
  const visible: Promise<void>[] = [];
  await Promise.all(decision.unmark.map((pod) => unmarkPod(writer, pod)));
  const removed = decision.remove.map(async ({ pod, reason }) => {
    try {
      await deletePod(writer, daemonSet, pod, reason);
      visible.push(writer.pods.gone(pod));
    } catch (error) {
      failures.push(error);
    }
  });
  await Promise.all(removed);
  const { error } = await slowStart(decision.create.length, async (index) => {
    try {
      const pod = labelled(podFor(daemonSet, decision.create[index] ?? ''), daemonSet, hash);
      const created = await createPod(writer, daemonSet, pod);
      visible.push(writer.pods.reached(created.metadata.resourceVersion));
    } catch (failure) {
      // Every create would fail, and the DaemonSet is about to be deleted.
      if (!isNamespaceTerminating(failure)) throw failure;
    }
  });
  for (const { metadata } of decision.obsolete) {
    const { name, namespace, uid } = metadata;
    await unlessChanged(writer.revisionClient.delete(name, namespace, { preconditions: { uid } }));
  }
  await Promise.all([...visible, writeStatus(writer, daemonSet, decision.status)]);
  const failure = error ?? failures[0];
  if (failure !== undefined) throw failure;
}

function labelled(pod: Pod, daemonSet: DaemonSet, hash: string): Pod {
  const generation = daemonSet.metadata.annotations?.[TEMPLATE_GENERATION];
  const labels = {
    ...pod.metadata.labels,
    ...(generation === undefined ? {} : { [GENERATION_LABEL]: generation }),
    [HASH]: hash,
  };
  return { ...pod, metadata: { ...pod.metadata, labels } };
}

async function writeStatus(
  { daemonSetClient, daemonSets }: DaemonWriter,
  daemonSet: DaemonSet,
  status: DaemonSet['status'],
): Promise<void> {
  if (status === undefined || isDeepStrictEqual(daemonSet.status, status)) return;
  const written = await unlessChanged(daemonSetClient.updateStatus({ ...daemonSet, status }));
  await daemonSets.reached(written?.metadata.resourceVersion);
}

/** Returns undefined if the object has been deleted or changed meanwhile: its change queues the DaemonSet again. */
async function unlessChanged<T>(write: Promise<T>): Promise<T | undefined> {
  try {
    return await write;
  } catch (error) {
    if (isApiError(error, 'NotFound') || isApiError(error, 'Conflict')) return undefined;
    throw error;
  }
}
