/**
 * Keeps the Pods of each StatefulSet: one for each ordinal, with claims of its own, created, updated and deleted in order.
 *
 * Reads: statefulsets (also a GET before an adoption), pods, persistentvolumeclaims, controllerrevisions.
 * Writes: pods (create, update, delete; ownerReferences; the condition DeletionReason), persistentvolumeclaims (create; ownerReferences),
 * controllerrevisions, the status of statefulsets, events.
 * Invariants:
 *  1. A Pod has the name of its ordinal, so that its successor exists only once the Pod no longer exists and its defer containers have
 *     ended.
 *  2. With the policy OrderedReady, a Pod is created only if all Pods with lower ordinals are available.
 *  3. A StatefulSet's next reconcile sees the writes of the previous one that must not be repeated, because a reconcile ends only when the
 *     informers' caches contain its writes.
 *  4. This controller deletes no claims. The garbage collector deletes the claims to which the retention policy has given an owner.
 *  5. The revision of a template exists before the first Pod of the template.
 * Source: pkg/controller/statefulset of v1.33 (behavior and wording).
 */
import type { ControllerRevision, PersistentVolumeClaim, Pod, StatefulSet } from '../../api/generated/types.ts';
import { CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS } from '../../api/resources.ts';
import { createEventRecorder } from '../../client/events.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import type { ControllerOptions } from '../controller.ts';
import { claimDependents } from '../ownership/claiming.ts';
import { ensureRevision } from '../revisions/ensure-revision.ts';
import { historyOf } from '../revisions/history.ts';
import { createWakes } from '../wakes.ts';
import { carryOut, countCollision, type StatefulWriter } from './carry-out.ts';
import { followStatefulSets } from './follow-stateful-sets.ts';
import { ordinalOf, STATEFUL_SET, STATEFUL_SET_REVISIONS } from './members.ts';
import { reconcile } from './reconcile.ts';

/** Resolves once the controller has read the objects that it follows. */
export async function startStatefulSets(options: ControllerOptions): Promise<void> {
  const { client, timers, log, signal, noMorePods } = options;
  const setClient = client.resource<StatefulSet>(STATEFUL_SETS);
  const queue = createWorkQueue({ name: 'statefulset', process, log, timers, signal, pause: noMorePods });
  const wakes = createWakes(timers, signal, queue.add);
  const followed = followStatefulSets(options, { changed: queue.add, deleted: wakes.cancel });
  const { sets, pods, revisions, claims } = followed;
  const writer: StatefulWriter = {
    ...followed,
    client,
    events: createEventRecorder(client, { component: 'statefulset-controller', timers, log, signal }),
    now: timers.now,
    setClient,
    podClient: client.resource<Pod>(PODS),
    claimClient: client.resource<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIMS),
    revisionClient: client.resource<ControllerRevision>(CONTROLLER_REVISIONS),
    countCollision: (set, count) => countCollision(setClient, set, count),
  };
  const synced = Promise.all([sets, pods, revisions, claims].map((informer) => informer.synced));

  async function process(key: string): Promise<void> {
    await synced;
    const [namespace, name] = key.split('/') as [string, string];
    const set = sets.get(namespace, name);
    if (set === undefined) return;
    const claimant = { owner: set, kind: STATEFUL_SET, fresh: () => setClient.get(name, namespace) };
    const { selector } = set.spec ?? {};
    const recorded = await claimDependents(writer.revisionClient, revisions, claimant, selector);
    const isMember = (pod: Pod): boolean => ordinalOf(set, pod) !== undefined;
    const owned = await claimDependents(writer.podClient, pods, claimant, selector, isMember);
    const history = historyOf(set, recorded);
    const update = await ensureRevision(writer, STATEFUL_SET_REVISIONS, set, history);
    if (update === undefined) return;
    const current = recorded.find(({ metadata }) => metadata.name === set.status?.currentRevision) ?? update;
    const decision = reconcile({
      set,
      revisions: { current, update },
      history,
      pods: owned,
      claimNamed: (claim) => claims.get(namespace, claim),
      now: timers.now(),
    });
    await carryOut(writer, set, decision);
    wakes.set(key, decision.checkAt);
  }

  await synced;
}
