/**
 * Writes decisions about DaemonSets to the API. Source: syncNodes of pkg/controller/daemon/daemon_controller.go, and update.go, of v1.33
 * (behavior).
 */

import { isDeepStrictEqual } from 'node:util';
import { TEMPLATE_GENERATION } from '../../api/apps/v1/daemon-set/index.ts';
import type { ControllerRevision, DaemonSet, Pod } from '../../api/generated/types.ts';
import type { ResourceClient } from '../../client/client.ts';
import type { Informer } from '../../client/informer.ts';
import { unlessChanged } from '../../client/unless-changed.ts';
import { uidOf } from '../../machinery/meta.ts';
import { isNamespaceTerminating } from '../../machinery/status.ts';
import { unmarkPod } from '../ownership/deletion-mark.ts';
import { controllerUids } from '../ownership/owner.ts';
import { createPod, deletePod, type PodWriter, slowStart } from '../ownership/pods-of-owner.ts';
import { deleteRevisions, type RevisionWriter } from '../revisions/ensure-revision.ts';
import type { History } from '../revisions/history.ts';
import { GENERATION_LABEL, HASH } from './daemons.ts';
import { hashOf } from './history.ts';
import { podFor } from './placement.ts';
import type { Decision } from './reconcile.ts';

export interface DaemonWriter extends PodWriter, RevisionWriter<DaemonSet> {
  daemonSetClient: ResourceClient<DaemonSet>;
  podClient: ResourceClient<Pod>;
  daemonSets: Informer<DaemonSet>;
  pods: Informer<Pod>;
}

/** Deletes duplicates of the current revision. First labels their Pods with the hash of the current revision. */
export async function dropDuplicates(
  writer: DaemonWriter,
  daemonSet: DaemonSet,
  { current, duplicates }: History,
): Promise<void> {
  if (current === undefined) return;
  for (const duplicate of duplicates) await dropDuplicate(writer, daemonSet, duplicate, hashOf(current));
}

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
  await deleteRevisions(revisionClient, [duplicate]);
}

const emptyStatus = { currentNumberScheduled: 0, numberMisscheduled: 0, desiredNumberScheduled: 0, numberReady: 0 };

/** Writes status.collisionCount. Ignores a conflict, because the change that caused it queues the DaemonSet. */
export const countCollision = (
  client: ResourceClient<DaemonSet>,
  daemonSet: DaemonSet,
  collisionCount: number,
): Promise<unknown> =>
  unlessChanged(client.updateStatus({ ...daemonSet, status: { ...emptyStatus, ...daemonSet.status, collisionCount } }));

/** Resolves once the informers' caches contain the writes. Rejects if a write has failed. */
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
      // The namespace is being deleted: every create would fail, and the DaemonSet is about to be deleted.
      if (!isNamespaceTerminating(failure)) throw failure;
    }
  });
  await deleteRevisions(writer.revisionClient, decision.obsolete);
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
