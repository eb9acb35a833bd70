/**
 * Keeps the number of Pods of each ReplicaSet and ReplicationController at spec.replicas.
 *
 * Reads: replicasets or replicationcontrollers (also a GET before an adoption), pods.
 * Writes: pods (create; delete; ownerReferences of Pods that are adopted or released; the condition DeletionReason), events, the status of
 * the owners.
 * Invariants:
 *  1. An owner's next reconcile sees the writes of the previous one that must not be repeated, because a reconcile ends only when the
 *     informers' caches contain its writes. Therefore one controller never creates a Pod twice. It creates too many only if another client
 *     adds Pods that the informer's cache does not contain yet, or if a create of a killed engine takes effect after the next engine has
 *     listed the Pods.
 *  2. Only active Pods are adopted, released and counted: those that have not ended and are not being deleted.
 *  3. An owner that is being deleted creates, deletes, adopts and releases nothing; its status is still updated.
 *  4. A reconcile visits only the owner's Pods and the Pods of its namespace that have no controller.
 * Source: pkg/controller/replicaset and pkg/controller/replication of v1.33 (behavior; its expectations are replaced by invariant 1).
 */
import { isDeepStrictEqual } from 'node:util';
import type { Pod } from '../../api/generated/types.ts';
import { PODS } from '../../api/resources.ts';
import { createEventRecorder } from '../../client/events.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { uidOf } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import type { ControllerOptions } from '../controller.ts';
import { claim } from '../ownership/claim.ts';
import { executeClaim } from '../ownership/claiming.ts';
import { controllerOf, controllerUids, orphanKey } from '../ownership/owner.ts';
import { isPodActive } from '../ownership/pod-state.ts';
import type { PodWriter } from '../ownership/pods-of-owner.ts';
import { createWakes } from '../wakes.ts';
import { followOwners } from './follow-owners.ts';
import { manageReplicas } from './manage-replicas.ts';
import { reconcile } from './reconcile.ts';
import { REPLICA_SET, REPLICATION_CONTROLLER, type ReplicaKind, type ReplicaOwner } from './replica-owner.ts';
import { nextAvailableAt, statusOf } from './status.ts';

export const startReplicaSets = (options: ControllerOptions): Promise<void> => startReplicas(options, REPLICA_SET);

export const startReplicationControllers = (options: ControllerOptions): Promise<void> =>
  startReplicas(options, REPLICATION_CONTROLLER);

/** Resolves once the controller has read the owners and the Pods. */
async function startReplicas(options: ControllerOptions, kind: ReplicaKind): Promise<void> {
  const { client, timers, log, signal, noMorePods } = options;
  const ownerClient = client.resource<ReplicaOwner>(kind.owner.resource);
  const podClient = client.resource<Pod>(PODS);
  const events = createEventRecorder(client, { component: kind.controller, timers, log, signal });
  const writer: PodWriter = { client, events, now: timers.now };
  const queue = createWorkQueue({ name: kind.controller, process, log, timers, signal, pause: noMorePods });
  const wakes = createWakes(timers, signal, queue.add);
  const { owners, pods } = followOwners(options, kind, { changed: queue.add, deleted: wakes.cancel });
  const synced = Promise.all([owners.synced, pods.synced]);

  async function process(key: string): Promise<void> {
    await synced;
    const [namespace, name] = key.split('/') as [string, string];
    const owner = owners.get(namespace, name);
    if (owner === undefined) return;
    const owned = await claimPods(owner);
    const { failure, ended } = await manage(owner, owned);
    const now = timers.now();
    const status = statusOf({ owner, pods: owned, failure: failure?.message, now });
    await Promise.all([ended, writeStatus(owner, status)]);
    wakes.set(key, nextAvailableAt(owner, owned, now));
    if (failure !== undefined) throw failure;
  }

  async function claimPods(owner: ReplicaOwner): Promise<Pod[]> {
    const { namespace, name } = owner.metadata;
    const candidates = [...pods.by(controllerUids, uidOf(owner)), ...pods.by(controllerUids, orphanKey(namespace))];
    const claimed = claim(owner, kind.selectorOf(owner), candidates.filter(isPodActive));
    const claimant = { owner, kind: kind.owner, fresh: () => ownerClient.get(name, namespace) };
    const owned = await executeClaim(podClient, claimant, claimed);
    await Promise.all(owned.map(({ metadata }) => pods.reached(metadata.resourceVersion)));
    return owned;
  }

  /** `ended` resolves once the informer's cache contains the writes. */
  function manage(owner: ReplicaOwner, owned: readonly Pod[]): ReturnType<typeof manageReplicas> {
    const controller = controllerOf(owner)?.uid;
    const family = controller === undefined ? [] : [...owners.by(controllerUids, controller)];
    const siblings = family.filter((each) => each !== owner);
    const related = (): Pod[] => family.flatMap((each) => [...pods.by(controllerUids, uidOf(each))]);
    const decision = reconcile({ owner, pods: owned, siblings, related, now: timers.now() });
    return manageReplicas(writer, pods, { owner, kind: kind.owner }, decision);
  }

  /** Ignores a conflict, because the change that caused it queues the owner again. */
  async function writeStatus(owner: ReplicaOwner, status: ReplicaOwner['status']): Promise<void> {
    if (status === undefined || isDeepStrictEqual(owner.status, status)) return;
    try {
      const { metadata } = await ownerClient.updateStatus({ ...owner, status });
      await owners.reached(metadata.resourceVersion);
    } catch (error) {
      if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
    }
  }

  await synced;
}
