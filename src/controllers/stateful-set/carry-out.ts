/**
 * Writes decisions about StatefulSets to the API.
 * Source: pkg/controller/statefulset/stateful_pod_control.go of v1.33 (behavior, reasons and wording).
 */
import { isDeepStrictEqual } from 'node:util';
import type { PersistentVolumeClaim, Pod, StatefulSet, StatefulSetStatus } from '../../api/generated/types.ts';
import type { ResourceClient } from '../../client/client.ts';
import type { Informer } from '../../client/informer.ts';
import { unlessChanged } from '../../client/unless-changed.ts';
import { isApiError, isNamespaceTerminating } from '../../machinery/status.ts';
import { unmarkPod } from '../ownership/deletion-mark.ts';
import { isControlledBy } from '../ownership/owner.ts';
import { deleteWithReason, type PodWriter, slowStart } from '../ownership/pods-of-owner.ts';
import { deleteRevisions, type RevisionWriter } from '../revisions/ensure-revision.ts';
import { type ClaimChange, type Decision, failedEvent, type NewMember, type Removal } from './reconcile.ts';

export interface StatefulWriter extends PodWriter, RevisionWriter<StatefulSet> {
  setClient: ResourceClient<StatefulSet>;
  podClient: ResourceClient<Pod>;
  claimClient: ResourceClient<PersistentVolumeClaim>;
  sets: Informer<StatefulSet>;
  pods: Informer<Pod>;
  claims: Informer<PersistentVolumeClaim>;
}

/** Writes status.collisionCount. Ignores a conflict, because the change that caused it queues the StatefulSet. */
export const countCollision = (
  client: ResourceClient<StatefulSet>,
  set: StatefulSet,
  collisionCount: number,
): Promise<unknown> =>
  unlessChanged(client.updateStatus({ ...set, status: { replicas: 0, ...set.status, collisionCount } }));

/**
 * Resolves once the informers' caches contain the writes. Rejects if a write has failed. A Pod is deleted only after its claims have their
 * owners, so that the garbage collector deletes the claims that the retention policy does not retain.
 */
export async function carryOut(writer: StatefulWriter, set: StatefulSet, decision: Decision): Promise<void> {
  for (const { type, reason, message } of decision.events) writer.events.event(set, type, reason, message);
  const visible: Promise<void>[] = [];
  const failures: unknown[] = [];
  const attempt = async (write: Promise<unknown>): Promise<void> => {
    await write.catch((error: unknown) => failures.push(error));
  };
  const turn = { writer, set, visible };
  await Promise.all(decision.unmark.map((pod) => attempt(unmarkPod(writer, pod))));
  for (const member of decision.claims) await attempt(unlessNamespaceEnds(createClaims(turn, member)));
  await Promise.all(decision.own.map((change) => attempt(changeOwners(turn, change))));
  await Promise.all(decision.correct.map((pod) => attempt(correctPod(turn, pod))));
  if (failures.length === 0) await Promise.all(decision.remove.map((removal) => attempt(removePod(turn, removal))));
  const { error } = await slowStart(decision.create.length, (index) =>
    createMember(turn, decision.create[index] as NewMember),
  );
  await deleteRevisions(writer.revisionClient, decision.obsolete);
  await Promise.all([...visible, writeStatus(writer, set, decision.status)]);
  const failure = error ?? failures[0];
  if (failure !== undefined) throw failure;
}

interface Turn {
  writer: StatefulWriter;
  set: StatefulSet;
  /** Promises that resolve once the informers' caches contain the writes so far. */
  visible: Promise<void>[];
}

/** Ignores a create that fails because the namespace is being deleted: the StatefulSet is about to be deleted as well. */
async function unlessNamespaceEnds(creation: Promise<void>): Promise<void> {
  try {
    await creation;
  } catch (error) {
    if (!isNamespaceTerminating(error)) throw error;
  }
}

const createMember = (turn: Turn, member: NewMember): Promise<void> => unlessNamespaceEnds(tryCreate(turn, member));

async function tryCreate(turn: Turn, member: NewMember): Promise<void> {
  const { writer, set, visible } = turn;
  const { name, namespace } = member.pod.metadata;
  try {
    await createClaims(turn, member);
    const created = await writer.podClient.create(member.pod);
    visible.push(writer.pods.reached(created.metadata.resourceVersion));
    const message = `create Pod ${name} in StatefulSet ${set.metadata.name} successful`;
    writer.events.event(set, 'Normal', 'SuccessfulCreate', message);
  } catch (error) {
    if (isNamespaceTerminating(error)) throw error;
    if (isApiError(error, 'AlreadyExists')) {
      const existing = await unlessChanged(writer.podClient.get(name, namespace));
      // An earlier reconcile created the Pod, but the informer had not received it yet. If another owner has the Pod, throw the error, so
      // that the create is repeated: a change of that Pod does not queue this StatefulSet.
      if (existing !== undefined && isControlledBy(existing, set)) return;
      throw error;
    }
    report(writer, set, failedEvent('Create', set, name, (error as Error).message));
    throw error;
  }
}

function report(
  { events }: StatefulWriter,
  set: StatefulSet,
  { type, reason, message }: ReturnType<typeof failedEvent>,
): void {
  events.event(set, type, reason, message);
}

/** AlreadyExists is success. Rejects at the first claim that cannot be created. */
async function createClaims({ writer, set, visible }: Turn, { pod, claims }: NewMember): Promise<void> {
  const suffix = `in StatefulSet ${set.metadata.name}`;
  for (const claim of claims) {
    const { name } = claim.metadata;
    try {
      const created = await writer.claimClient.create(claim);
      visible.push(writer.claims.reached(created.metadata.resourceVersion));
      const message = `create Claim ${name} Pod ${pod.metadata.name} ${suffix} success`;
      writer.events.event(set, 'Normal', 'SuccessfulCreate', message);
    } catch (error) {
      if (isApiError(error, 'AlreadyExists')) continue;
      if (isNamespaceTerminating(error)) throw error;
      const text = (error as Error).message;
      const message = `create Claim ${name} for Pod ${pod.metadata.name} ${suffix} failed error: ${text}`;
      writer.events.event(set, 'Warning', 'FailedCreate', message);
      throw new Error(`failed to create PVC ${name}: ${text}`, { cause: error });
    }
  }
}

/**
 * Writes the owner references of the claim. Rejects with Conflict if the claim has changed since the decision, so that the decision is
 * repeated.
 */
async function changeOwners({ writer, visible }: Turn, { claim, references }: ClaimChange): Promise<void> {
  const metadata = { ...claim.metadata, ownerReferences: references };
  try {
    const updated = await writer.claimClient.update({ ...claim, metadata });
    visible.push(writer.claims.reached(updated.metadata.resourceVersion));
  } catch (error) {
    if (!isApiError(error, 'NotFound')) throw error;
  }
}

async function correctPod({ writer, set, visible }: Turn, pod: Pod): Promise<void> {
  const { name } = pod.metadata;
  try {
    const updated = await unlessChanged(writer.podClient.update(pod));
    if (updated === undefined) return;
    visible.push(writer.pods.reached(updated.metadata.resourceVersion));
    const message = `update Pod ${name} in StatefulSet ${set.metadata.name} successful`;
    writer.events.event(set, 'Normal', 'SuccessfulUpdate', message);
  } catch (error) {
    report(writer, set, failedEvent('Update', set, name, (error as Error).message));
    throw error;
  }
}

async function removePod({ writer, set, visible }: Turn, { pod, reason }: Removal): Promise<void> {
  const { name } = pod.metadata;
  try {
    if (await deleteWithReason(writer, pod, reason)) {
      const message = `delete Pod ${name} in StatefulSet ${set.metadata.name} successful`;
      writer.events.event(set, 'Normal', 'SuccessfulDelete', message);
    }
    visible.push(writer.pods.gone(pod));
  } catch (error) {
    report(writer, set, failedEvent('Delete', set, name, (error as Error).message));
    throw error;
  }
}

async function writeStatus(
  { setClient, sets }: StatefulWriter,
  set: StatefulSet,
  status: StatefulSetStatus,
): Promise<void> {
  if (isDeepStrictEqual(set.status, status)) return;
  const written = await unlessChanged(setClient.updateStatus({ ...set, status }));
  await sets.reached(written?.metadata.resourceVersion);
}
