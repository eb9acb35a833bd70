/**
 * Keeps one Pod of each DaemonSet on every node that fits, and updates the Pods to the current template.
 *
 * Reads: daemonsets (also a GET before an adoption), nodes, pods, controllerrevisions.
 * Writes: pods (create, delete; ownerReferences; the label controller-revision-hash; the condition DeletionReason), controllerrevisions,
 * the status of daemonsets, events.
 * Invariants:
 *  1. A DaemonSet's next reconcile sees the writes of the previous one that must not be repeated, because a reconcile ends only when the
 *     informers' caches contain its writes.
 *  2. The revision of a template exists before the first Pod of the template.
 *  3. A DaemonSet that is being deleted creates, deletes, adopts and releases nothing.
 * A crash loses only the delays after failed Pods.
 * Source: pkg/controller/daemon of v1.33 (behavior and wording).
 */
import type { ControllerRevision, DaemonSet, Pod } from '../../api/generated/types.ts';
import { CONTROLLER_REVISIONS, DAEMON_SETS, PODS } from '../../api/resources.ts';
import type { ResourceClient } from '../../client/client.ts';
import { createEventRecorder } from '../../client/events.ts';
import type { Informer } from '../../client/informer.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import type { ControllerOptions } from '../controller.ts';
import { claimDependents } from '../ownership/claiming.ts';
import { ensureRevision } from '../revisions/ensure-revision.ts';
import { historyOf } from '../revisions/history.ts';
import { createWakes } from '../wakes.ts';
import { createBackOff, earliest, retriesOf } from './back-off.ts';
import { carryOut, countCollision, type DaemonWriter, dropDuplicates } from './carry-out.ts';
import { followDaemonSets } from './follow-daemon-sets.ts';
import { DAEMON_SET_REVISIONS, hashOf } from './history.ts';
import { DAEMON_SET } from './placement.ts';
import { reconcile } from './reconcile.ts';

/** Resolves once the controller has read the objects that it follows. */
export async function startDaemonSets(options: ControllerOptions): Promise<void> {
  const { client, timers, log, signal, noMorePods } = options;
  const daemonSetClient = client.resource<DaemonSet>(DAEMON_SETS);
  const podClient = client.resource<Pod>(PODS);
  const revisionClient = client.resource<ControllerRevision>(CONTROLLER_REVISIONS);
  const events = createEventRecorder(client, { component: 'daemonset-controller', timers, log, signal });
  const queue = createWorkQueue({ name: 'daemonset', process, log, timers, signal, pause: noMorePods });
  const wakes = createWakes(timers, signal, queue.add);
  const backOff = createBackOff();
  const { daemonSets, nodes, pods, revisions } = followDaemonSets(options, {
    changed: queue.add,
    deleted({ metadata }) {
      wakes.cancel(`${metadata.namespace}/${metadata.name}`);
      backOff.forget(`${metadata.uid}/`);
    },
  });
  const writer: DaemonWriter = {
    client,
    events,
    now: timers.now,
    daemonSetClient,
    podClient,
    revisionClient,
    daemonSets,
    pods,
    revisions,
    countCollision: (daemonSet, count) => countCollision(daemonSetClient, daemonSet, count),
  };
  const synced = Promise.all([daemonSets, nodes, pods, revisions].map((informer) => informer.synced));

  async function process(key: string): Promise<void> {
    await synced;
    const [namespace, name] = key.split('/') as [string, string];
    const daemonSet = daemonSets.get(namespace, name);
    if (daemonSet === undefined || daemonSet.metadata.deletionTimestamp !== undefined) return;
    const history = historyOf(daemonSet, await claimed(daemonSet, revisionClient, revisions));
    await dropDuplicates(writer, daemonSet, history);
    const current = await ensureRevision(writer, DAEMON_SET_REVISIONS, daemonSet, history);
    if (current === undefined) return;
    const owned = await claimed(daemonSet, podClient, pods);
    const now = timers.now();
    const retries = retriesOf(backOff, daemonSet, now);
    const decision = reconcile({
      daemonSet,
      history: { ...history, current },
      nodes: nodes.list(),
      pods: owned,
      mayRetry: retries.mayRetry,
      now,
    });
    for (const node of decision.failedOn) retries.failed(node);
    await carryOut(writer, daemonSet, hashOf(current), decision);
    wakes.set(key, earliest(decision.checkAt, retries.next()));
  }

  function claimed<T extends KubeObject>(
    daemonSet: DaemonSet,
    objects: ResourceClient<T>,
    copy: Informer<T>,
  ): Promise<T[]> {
    const { namespace, name } = daemonSet.metadata;
    const fresh = () => daemonSetClient.get(name, namespace);
    return claimDependents(objects, copy, { owner: daemonSet, kind: DAEMON_SET, fresh }, daemonSet.spec?.selector);
  }

  await synced;
}
