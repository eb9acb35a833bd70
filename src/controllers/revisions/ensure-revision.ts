/**
 * Writes the ControllerRevision of a workload's current template.
 * Source: pkg/controller/history/controller_history.go and pkg/controller/daemon/update.go of v1.33 (behavior).
 */
import type { ControllerRevision } from '../../api/generated/types.ts';
import type { ResourceClient } from '../../client/client.ts';
import type { Informer } from '../../client/informer.ts';
import { unlessChanged } from '../../client/unless-changed.ts';
import { isApiError, isNamespaceTerminating } from '../../machinery/status.ts';
import { isControlledBy } from '../ownership/owner.ts';
import { type History, hasContentOf, newRevision, type RevisionKind, type RevisionOwner } from './history.ts';

export interface RevisionWriter<Owner extends RevisionOwner> {
  revisionClient: ResourceClient<ControllerRevision>;
  revisions: Informer<ControllerRevision>;
  /** Writes status.collisionCount, which changes the name of the next revision. */
  countCollision(owner: Owner, collisionCount: number): Promise<unknown>;
}

/**
 * Creates the revision of the current template, or corrects its number. Resolves with undefined if another change causes the next attempt,
 * or if the namespace is being deleted.
 */
export async function ensureRevision<Owner extends RevisionOwner>(
  writer: RevisionWriter<Owner>,
  kind: RevisionKind,
  owner: Owner,
  { current, revision }: History,
): Promise<ControllerRevision | undefined> {
  if (current === undefined) return createRevision(writer, kind, owner, revision);
  if (current.revision === revision) return current;
  const updated = await unlessChanged(writer.revisionClient.update({ ...current, revision }));
  await writer.revisions.reached(updated?.metadata.resourceVersion);
  return updated;
}

async function createRevision<Owner extends RevisionOwner>(
  writer: RevisionWriter<Owner>,
  kind: RevisionKind,
  owner: Owner,
  number: number,
): Promise<ControllerRevision | undefined> {
  const revision = newRevision(owner, kind, number);
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
  // An earlier reconcile created the revision, but the informer had not received it yet.
  if (isControlledBy(existing, owner) && hasContentOf(existing, owner)) return existing;
  await writer.countCollision(owner, (owner.status?.collisionCount ?? 0) + 1);
  return undefined;
}

/** Ignores revisions that no longer exist or have been replaced. */
export async function deleteRevisions(
  client: ResourceClient<ControllerRevision>,
  revisions: readonly ControllerRevision[],
): Promise<void> {
  for (const { metadata } of revisions) {
    const { name, namespace, uid } = metadata;
    await unlessChanged(client.delete(name, namespace, { preconditions: { uid } }));
  }
}
