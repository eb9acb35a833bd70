/**
 * The subresource `defer` of a Pod: lets a client skip a defer container while the Pod terminates. A write only adds the name of the defer
 * container to the list status.termination.skip, which the node reads.
 * Source: the specification of defer containers, "Time".
 */
import { notSupported, required } from '../../../../machinery/field-error.ts';
import type { KubeObject } from '../../../../machinery/meta.ts';
import { conflict, invalidObject } from '../../../../machinery/status.ts';
import type { DeferControl, Pod } from '../../../generated/types.ts';
import type { SubresourceDefinition } from '../../../kind.ts';
import { isMirrorPod } from './mirror.ts';
import { hasEnded } from './status/final-phase.ts';
import { withSkips } from './strategy.ts';

const CONTROL = { group: 'lifepod.io', version: 'v1', kind: 'DeferControl', schema: 'io.lifepod.v1.DeferControl' };

/**
 * Adds the defer container that the body names to status.termination.skip. Throws 422 if the body names no defer container of the Pod.
 * Throws 409 if the Pod is a mirror Pod or not terminating, or if the Pod has ended although the defer container has not terminated.
 * Changes nothing if the defer container has terminated or is already in the list.
 */
function giveUp(old: Pod, body: KubeObject): Pod {
  const { name } = old.metadata;
  const { skip } = body as DeferControl;
  const entries = (old.spec?.deferContainers ?? []).map((entry) => entry.name);
  if (!skip) throw invalidObject(CONTROL, name, [required('skip')]);
  if (!entries.includes(skip)) throw invalidObject(CONTROL, name, [notSupported('skip', skip, entries)]);
  const refuse = (cause: string) => conflict({ group: '', resource: 'pods/defer' }, name, cause);
  if (isMirrorPod(old)) {
    throw refuse('the pod mirrors a static pod of its node, whose defer containers cannot be given up through the API');
  }
  const { termination, deferContainerStatuses = [] } = old.status ?? {};
  if (termination === undefined) {
    throw refuse('the pod is not terminating: its node has not set status.termination');
  }
  if (deferContainerStatuses.some((status) => status.name === skip && status.state?.terminated !== undefined))
    return old;
  if (hasEnded(old)) throw refuse('the pod has terminated: its defer containers can no longer run');
  if (termination.skip?.includes(skip)) return old;
  return {
    ...old,
    status: { ...old.status, termination: withSkips(termination, [...(termination.skip ?? []), skip]) },
  };
}

const newlySkipped = (pod: Pod, old: Pod): string[] => {
  const before = new Set(old.status?.termination?.skip);
  return (pod.status?.termination?.skip ?? []).filter((name) => !before.has(name));
};

export const deferSubresource: SubresourceDefinition<Pod> = {
  bodyKind: CONTROL,
  verbs: ['update'],
  ends: true,
  apply: giveUp,
  response: ({ metadata: { name, namespace, uid, resourceVersion } }, body) => {
    const { skip } = body as DeferControl;
    const metadata = { name, namespace, uid, resourceVersion };
    return { apiVersion: `${CONTROL.group}/${CONTROL.version}`, kind: CONTROL.kind, metadata, skip } as DeferControl;
  },
  events: (pod, old, user) =>
    newlySkipped(pod, old).map((name) => ({
      type: 'Normal',
      reason: 'DeferContainerGivenUp',
      message: `User ${JSON.stringify(user)} gave up defer container ${JSON.stringify(name)}`,
      fieldPath: `spec.deferContainers{${name}}`,
    })),
};
