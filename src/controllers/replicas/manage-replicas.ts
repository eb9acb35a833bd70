/** Writes a decision of reconcile() to the API. Source: manageReplicas of pkg/controller/replicaset/replica_set.go of v1.33 (behavior). */

import type { Pod } from '../../api/generated/types.ts';
import type { Informer } from '../../client/informer.ts';
import { isNamespaceTerminating } from '../../machinery/status.ts';
import { unmarkPod } from '../ownership/deletion-mark.ts';
import type { OwnerKind } from '../ownership/owner.ts';
import { createPod, deletePod, type PodWriter, podFromTemplate, slowStart } from '../ownership/pods-of-owner.ts';
import type { Decision } from './reconcile.ts';
import type { ReplicaOwner } from './replica-owner.ts';

export interface Managed {
  /** The error of a failed write; undefined if all writes succeeded. */
  failure: Error | undefined;
  /** Resolves once the informer's cache contains the successful writes. */
  ended: Promise<unknown>;
}

export async function manageReplicas(
  writer: PodWriter,
  pods: Informer<Pod>,
  { owner, kind }: { owner: ReplicaOwner; kind: OwnerKind },
  { create, remove, reason, unmark }: Decision,
): Promise<Managed> {
  const visible: Promise<void>[] = [];
  const failures: unknown[] = [];
  const attempt = async (write: Promise<void>): Promise<void> => {
    await write.catch((error: unknown) => failures.push(error));
  };
  await Promise.all(unmark.map((pod) => attempt(unmarkPod(writer, pod))));
  const remaining = remove.map(async (pod) => {
    await deletePod(writer, owner, pod, reason);
    visible.push(pods.gone(pod));
  });
  await Promise.all(remaining.map(attempt));
  const { error } = await slowStart(create, async () => {
    try {
      const { metadata } = await createPod(writer, owner, podFromTemplate(owner.spec?.template, owner, kind));
      visible.push(pods.reached(metadata.resourceVersion));
    } catch (failure) {
      // The namespace is being deleted: every create would fail, and the owner is about to be deleted.
      if (!isNamespaceTerminating(failure)) throw failure;
    }
  });
  const failure = (error ?? failures[0]) as Error | undefined;
  return { failure, ended: Promise.all(visible) };
}
