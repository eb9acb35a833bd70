/** Explains how a claim of a Pod gets another spec. A spec is immutable, and controllers create deleted claims again. Pure. */
import type { Pod } from '../../../api/generated/types.ts';
import { claimNameOf } from '../../../scheduling/volume-claims.ts';
import { controllerOf } from '../subject.ts';
import { workloadOf } from './pod-source.ts';

/** The ephemeral volume or StatefulSet from whose template a controller creates a claim, again if the claim is deleted. */
type ClaimTemplate = { kind: 'ephemeral volume' | 'StatefulSet'; name: string };

/** Returns undefined for a claim that a user creates. `claim`: the name of a claim of the Pod. */
export function claimTemplate(pod: Pod, claim: string): ClaimTemplate | undefined {
  const volume = (pod.spec?.volumes ?? []).find((each) => claimNameOf(pod, each) === claim);
  if (volume?.ephemeral !== undefined) return { kind: 'ephemeral volume', name: volume.name };
  const owner = controllerOf(pod);
  if (owner?.kind !== 'StatefulSet' || claim !== `${volume?.name}-${pod.metadata.name}`) return undefined;
  return { kind: 'StatefulSet', name: owner.name };
}

/** Returns an instruction that gives the claim another spec, with `part`, such as `the storageClassName of one that exists`. */
export function replaceClaim(pod: Pod, claim: string, part: string): string {
  const template = claimTemplate(pod, claim);
  if (template === undefined) return `delete the claim and create it again with ${part}`;
  const { kind, name } = template;
  return kind === 'StatefulSet'
    ? `delete the StatefulSet ${name} and then the claim, and create the StatefulSet again with ${part} in its volumeClaimTemplates`
    : replacePod(pod, `${part} in its ephemeral volume ${name}`);
}

/** Returns an instruction that replaces the Pod by one with `change`. The template of a Job is immutable. */
export function replacePod(pod: Pod, change: string): string {
  const owner = controllerOf(pod);
  if (owner === undefined) return `recreate the Pod with ${change}`;
  if (owner.kind === 'Job') return `recreate the Job ${owner.name} with ${change}`;
  const { kind, title = 'its workload' } = workloadOf({ pod }) ?? {};
  const then = kind === 'Deployment' ? '' : ', and delete the Pod if it is not replaced';
  return `apply ${title} with ${change}${then}`;
}
