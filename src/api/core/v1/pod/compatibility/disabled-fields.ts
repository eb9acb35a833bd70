/**
 * Silently drops the fields of three feature gates that are off by default in Kubernetes v1.33: PodLevelResources,
 * DynamicResourceAllocation and ContainerStopSignals. Source: DropDisabledPodFields of v1.33 (behavior).
 */
import type { Pod } from '../../../../generated/types.ts';
import { containersOf } from '../containers.ts';

/** Keeps the fields that `old` also has. `old`: the Pod that is replaced; undefined on create. */
export function dropDisabledFields(pod: Pod, old?: Pod): void {
  if (pod.spec === undefined) return;
  for (const field of ['resources', 'resourceClaims'] as const)
    if (old?.spec?.[field] === undefined) delete pod.spec[field];
  const before = old && new Map(containersOf(old).map((container) => [container.name, container]));
  for (const container of containersOf(pod)) {
    const known = before?.get(container.name);
    if (known?.resources?.claims === undefined) delete container.resources?.claims;
    if (container.lifecycle === undefined || known?.lifecycle?.stopSignal !== undefined) continue;
    delete container.lifecycle.stopSignal;
    if (Object.keys(container.lifecycle).length === 0) delete container.lifecycle;
  }
}
