/** Finds workloads that create no Pods until the user changes them or a node, although nothing refuses their Pods. Pure. */
import type { CronJob, DaemonSet, Deployment } from '../../api/generated/types.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import type { Hints } from '../hints.ts';
import type { Action } from '../why/subject.ts';

export interface Idleness {
  /** A clause without the name of the workload. */
  cause: string;
  action: Action;
}

/**
 * Returns why the workload creates no Pods now; undefined if this is not known. `kind`: the kind of the object, which items of lists do not
 * contain.
 */
export function idlenessOf(kind: string | undefined, object: KubeObject, hints: Hints): Idleness | undefined {
  if (kind === 'Job' || kind === 'CronJob') return suspension(kind, object, hints);
  if (kind === 'Deployment') return pausedFromStart(object as Deployment, hints);
  return kind === 'DaemonSet' ? withoutNode(object as DaemonSet, hints) : undefined;
}

function suspension(kind: string, object: KubeObject, hints: Hints): Idleness | undefined {
  const { metadata, spec } = object as Pick<CronJob, 'metadata'> & { spec?: { suspend?: boolean } };
  if (spec?.suspend !== true) return undefined;
  const { name, namespace = 'default' } = metadata;
  const patch = `-p '{"spec":{"suspend":false}}'`;
  const command = hints.kubectl(`patch ${kind.toLowerCase()} ${name} -n ${namespace} ${patch}`);
  return { cause: 'it is suspended', action: { description: 'resume it', command } };
}

const resume = ({ metadata: { name, namespace = 'default' } }: Deployment, hints: Hints): Action => ({
  description: 'resume it',
  command: hints.kubectl(`rollout resume deployment/${name} -n ${namespace}`),
});

/**
 * Returns why a paused Deployment has no Pods: it scales the ReplicaSets that it has, but creates none. Undefined for other Deployments.
 */
function pausedFromStart(object: Deployment, hints: Hints): Idleness | undefined {
  const { spec, status } = object;
  if (spec?.paused !== true || spec.replicas === 0 || status?.replicas) return undefined;
  return { cause: 'it is paused', action: resume(object, hints) };
}

/** Returns how far the rollout of a paused Deployment is; undefined if it is complete, or for other workloads. */
export function pausedRollout(object: KubeObject, hints: Hints): Idleness | undefined {
  const deployment = object as Deployment;
  const { spec, status } = deployment;
  if (object.kind !== 'Deployment' || spec?.paused !== true) return undefined;
  const { replicas: wanted = 1 } = spec;
  const { replicas = 0, updatedReplicas = 0 } = status ?? {};
  if (updatedReplicas >= wanted && replicas <= updatedReplicas) return undefined;
  const cause = `is paused during a rollout (Pods with the current template: ${updatedReplicas} of ${wanted})`;
  return { cause, action: resume(deployment, hints) };
}

/** Returns why a DaemonSet has no Pods if its controller has counted the nodes that fit, and found none; undefined otherwise. */
function withoutNode({ metadata, spec, status }: DaemonSet, hints: Hints): Idleness | undefined {
  const { observedGeneration, desiredNumberScheduled } = status ?? {};
  if (desiredNumberScheduled !== 0 || observedGeneration === undefined || observedGeneration !== metadata.generation)
    return undefined;
  const labels = Object.entries(spec?.template.spec?.nodeSelector ?? {}).map(([key, value]) => `${key}=${value}`);
  const selector = labels.length === 0 ? '' : `; its nodeSelector is ${labels.join(',')}`;
  return {
    cause: `no node fits it${selector}`,
    action: {
      description: 'label a node as it requires, or change its nodeSelector, affinity or tolerations',
      command: hints.kubectl(`label node NODE ${labels.join(' ') || 'KEY=VALUE'}`),
    },
  };
}
