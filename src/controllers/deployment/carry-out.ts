/**
 * Writes the decision of reconcile() about a Deployment to the API.
 * Source: pkg/controller/deployment/sync.go of v1.33 (behavior and wording).
 */
import { isDeepStrictEqual } from 'node:util';
import type { Deployment, ReplicaSet } from '../../api/generated/types.ts';
import type { ResourceClient } from '../../client/client.ts';
import type { EventRecorder } from '../../client/events.ts';
import type { Informer } from '../../client/informer.ts';
import { unlessChanged } from '../../client/unless-changed.ts';
import { isApiError, isNamespaceTerminating } from '../../machinery/status.ts';
import type { Millis } from '../../machinery/time.ts';
import { isControlledBy } from '../ownership/owner.ts';
import { deadlineOf, progressing, withCondition } from './conditions.ts';
import type { Change, Decision } from './reconcile.ts';
import { REVISION, sameTemplateIgnoringHash } from './revisions.ts';
import { sizeOf } from './rollout.ts';

export interface DeploymentWriter {
  deploymentClient: ResourceClient<Deployment>;
  setClient: ResourceClient<ReplicaSet>;
  deployments: Informer<Deployment>;
  replicaSets: Informer<ReplicaSet>;
  events: EventRecorder;
  now: () => Millis;
}

/**
 * Writes the ReplicaSets first, then the status, and stops early at a ReplicaSet that has changed since the decision. Resolves with true
 * once the informers' caches contain the writes, and with false if the ReplicaSet to create does not exist yet. A conflict or a deleted
 * object is not an error: the concurrent change causes the next decision.
 */
export async function carryOut(writer: DeploymentWriter, deployment: Deployment, decision: Decision): Promise<boolean> {
  const { create, changes, remove } = decision;
  if (create !== undefined && !(await createSet(writer, deployment, create))) return false;
  for (const change of changes) if (!(await applyChange(writer, deployment, change))) return true;
  for (const { metadata } of remove) {
    const { name, namespace, uid, resourceVersion } = metadata;
    await unlessChanged(writer.setClient.delete(name, namespace, { preconditions: { uid, resourceVersion } }));
  }
  await writeStatus(writer, deployment, decision);
  return true;
}

/**
 * Creates the ReplicaSet. Resolves with true if it exists afterwards. If another ReplicaSet has its name, increments the collisionCount of
 * the Deployment, so that the next attempt uses another name.
 */
async function createSet(writer: DeploymentWriter, deployment: Deployment, set: ReplicaSet): Promise<boolean> {
  const { name, namespace } = set.metadata;
  try {
    const created = await writer.setClient.create(set);
    await writer.replicaSets.reached(created.metadata.resourceVersion);
    reportScale(writer.events, deployment, set, 0);
    return true;
  } catch (error) {
    if (isNamespaceTerminating(error)) return false;
    if (isApiError(error, 'AlreadyExists')) {
      const existing = await writer.setClient.get(name, namespace);
      // An earlier reconcile created the ReplicaSet, but the informer had not received it yet.
      if (isControlledBy(existing, deployment) && sameTemplateIgnoringHash(existing.spec?.template, set.spec?.template))
        return true;
      const collisionCount = (deployment.status?.collisionCount ?? 0) + 1;
      await unlessChanged(
        writer.deploymentClient.updateStatus({ ...deployment, status: { ...deployment.status, collisionCount } }),
      );
      return false;
    }
    await reportFailedCreate(writer, deployment, name, error as Error);
    throw error;
  }
}

async function reportFailedCreate(
  writer: DeploymentWriter,
  deployment: Deployment,
  name: string,
  error: Error,
): Promise<void> {
  const message = `Failed to create new replica set "${name}": ${error.message}`;
  writer.events.event(deployment, 'Warning', 'ReplicaSetCreateError', message);
  if (deadlineOf(deployment) === undefined) return;
  const before = deployment.status?.conditions ?? [];
  const conditions = withCondition(before, progressing('False', 'ReplicaSetCreateError', message), writer.now());
  if (conditions !== before)
    await unlessChanged(
      writer.deploymentClient.updateStatus({
        ...deployment,
        status: { ...deployment.status, conditions: [...conditions] },
      }),
    );
}

/**
 * Writes the changed ReplicaSet. Resolves with false if the ReplicaSet has changed since the decision, so that the rest of the decision may
 * be wrong.
 */
async function applyChange(writer: DeploymentWriter, deployment: Deployment, { from, to }: Change): Promise<boolean> {
  const written = await unlessChanged(writer.setClient.update(to));
  if (written === undefined) return false;
  reportScale(writer.events, deployment, to, sizeOf(from));
  await writer.replicaSets.reached(written.metadata.resourceVersion);
  return true;
}

async function writeStatus(
  writer: DeploymentWriter,
  deployment: Deployment,
  { status, revision }: Decision,
): Promise<void> {
  const annotations = { ...deployment.metadata.annotations };
  if (revision !== undefined) annotations[REVISION] = String(revision);
  const isSame = annotations[REVISION] === deployment.metadata.annotations?.[REVISION];
  if (isSame && isDeepStrictEqual(deployment.status, status)) return;
  const metadata = isSame ? deployment.metadata : { ...deployment.metadata, annotations };
  const written = await unlessChanged(writer.deploymentClient.updateStatus({ ...deployment, metadata, status }));
  await writer.deployments.reached(written?.metadata.resourceVersion);
}

function reportScale(events: EventRecorder, deployment: Deployment, set: ReplicaSet, from: number): void {
  const to = sizeOf(set);
  if (from === to) return;
  const message = `Scaled ${to > from ? 'up' : 'down'} replica set ${set.metadata.name} from ${from} to ${to}`;
  events.event(deployment, 'Normal', 'ScalingReplicaSet', message);
}
