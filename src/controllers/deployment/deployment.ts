/**
 * Rolls the Pods of each Deployment over to its template, by creating and scaling ReplicaSets.
 *
 * Reads: deployments (also a GET before an adoption), replicasets, pods.
 * Writes: replicasets (create, update, delete; ownerReferences), the status and the annotation with the revision of deployments, events.
 * Invariants:
 *  1. A Deployment's next reconcile sees the writes of the previous one that must not be repeated, because a reconcile ends only when the
 *     informers' caches contain its writes.
 *  2. ReplicaSets are updated with the resourceVersion that the decision has seen: a decision about an older state has no effect.
 *  3. The status is written after the ReplicaSets, so that it never reports a step that a crash has prevented.
 * Source: pkg/controller/deployment of v1.33 (behavior and wording).
 */
import type { Deployment, ReplicaSet } from '../../api/generated/types.ts';
import { DEPLOYMENTS, REPLICA_SETS } from '../../api/resources.ts';
import { createEventRecorder } from '../../client/events.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { uidOf } from '../../machinery/meta.ts';
import type { ControllerOptions } from '../controller.ts';
import { claimDependents } from '../ownership/claiming.ts';
import { controllerUids } from '../ownership/owner.ts';
import { createWakes } from '../wakes.ts';
import { carryOut, type DeploymentWriter } from './carry-out.ts';
import { followDeployments } from './follow-deployments.ts';
import { reconcile } from './reconcile.ts';
import { DEPLOYMENT } from './revisions.ts';

/** Resolves once the controller has read the Deployments, the ReplicaSets and the Pods. */
export async function startDeployments(options: ControllerOptions): Promise<void> {
  const { client, timers, log, signal } = options;
  const deploymentClient = client.resource<Deployment>(DEPLOYMENTS);
  const setClient = client.resource<ReplicaSet>(REPLICA_SETS);
  const events = createEventRecorder(client, { component: 'deployment-controller', timers, log, signal });
  const queue = createWorkQueue({ name: 'deployment', process, log, timers, signal });
  const wakes = createWakes(timers, signal, queue.add);
  const { deployments, replicaSets, pods } = followDeployments(options, { changed: queue.add, deleted: wakes.cancel });
  const writer: DeploymentWriter = { deploymentClient, setClient, deployments, replicaSets, events, now: timers.now };
  const synced = Promise.all([deployments.synced, replicaSets.synced, pods.synced]);

  async function process(key: string): Promise<void> {
    await synced;
    const [namespace, name] = key.split('/') as [string, string];
    const deployment = deployments.get(namespace, name);
    if (deployment === undefined) return;
    const owned = await claimSets(deployment);
    const now = timers.now();
    const podsOf = (set: ReplicaSet) => pods.by(controllerUids, uidOf(set));
    const decision = reconcile({ deployment, replicaSets: owned, podsOf, now });
    if (await carryOut(writer, deployment, decision)) wakes.set(key, decision.checkAt);
  }

  function claimSets(deployment: Deployment): Promise<ReplicaSet[]> {
    const { namespace, name } = deployment.metadata;
    const claimant = { owner: deployment, kind: DEPLOYMENT, fresh: () => deploymentClient.get(name, namespace) };
    return claimDependents(setClient, replicaSets, claimant, deployment.spec?.selector);
  }

  await synced;
}
