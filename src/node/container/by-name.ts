/** Caches maps and sets per Pod object, since a Pod may have thousands of containers and volumes. */
import { type AnyContainer, containersOf } from '../../api/core/v1/pod/containers.ts';
import type { Pod, Volume } from '../../api/generated/types.ts';

const containers = new WeakMap<Pod, ReadonlyMap<string, AnyContainer>>();
const ephemeral = new WeakMap<Pod, ReadonlySet<AnyContainer>>();
const volumes = new WeakMap<Pod, ReadonlyMap<string, Volume>>();

export const containersByName = (pod: Pod): ReadonlyMap<string, AnyContainer> =>
  kept(containers, pod, () => containersOf(pod));

export function ephemeralContainers(pod: Pod): ReadonlySet<AnyContainer> {
  const all = ephemeral.get(pod) ?? new Set<AnyContainer>(pod.spec?.ephemeralContainers);
  ephemeral.set(pod, all);
  return all;
}

export const volumesByName = (pod: Pod): ReadonlyMap<string, Volume> =>
  kept(volumes, pod, () => pod.spec?.volumes ?? []);

function kept<Named extends { name: string }>(
  known: WeakMap<Pod, ReadonlyMap<string, Named>>,
  pod: Pod,
  list: () => readonly Named[],
): ReadonlyMap<string, Named> {
  const byName = known.get(pod) ?? new Map(list().map((each) => [each.name, each]));
  known.set(pod, byName);
  return byName;
}
