/**
 * The requests and limits that a LimitRange sets in a new Pod.
 * Source: the plugin LimitRanger of v1.33 (behavior and text of the annotation); the specification of defer containers, by which entries
 * without requests and limits get no defaults.
 */
import type { LimitRange, Pod, ResourceRequirements } from '../../../generated/types.ts';
import { specOf } from '../pod/containers.ts';
import { countedDefers } from '../pod/resources.ts';

/** The annotation of a Pod that lists the requests and limits that a LimitRange has set. */
export const LIMIT_RANGER_ANNOTATION = 'kubernetes.io/limit-ranger';

type Amounts = Record<string, string>;

interface WithResources {
  name: string;
  resources?: ResourceRequirements;
}

export function setContainerDefaults(pod: Pod, { spec }: LimitRange): void {
  const defaults = { limits: {} as Amounts, requests: {} as Amounts };
  for (const item of spec?.limits ?? []) {
    if (item.type !== 'Container') continue;
    Object.assign(defaults.limits, item.default);
    Object.assign(defaults.requests, item.defaultRequest);
  }
  const { containers, initContainers = [] } = specOf(pod);
  const changes = [
    ...containers.flatMap((each) => setIn(each, 'container', defaults)),
    ...initContainers.flatMap((each) => setIn(each, 'init container', defaults)),
    ...countedDefers(specOf(pod)).flatMap((each) => setIn(each, 'defer container', defaults)),
  ];
  if (changes.length === 0) return;
  const text = `LimitRanger plugin set: ${changes.join('; ')}`;
  pod.metadata.annotations = { ...pod.metadata.annotations, [LIMIT_RANGER_ANNOTATION]: text };
}

function setIn(
  container: WithResources,
  list: string,
  { requests, limits }: { requests: Amounts; limits: Amounts },
): string[] {
  const changes: string[] = [];
  for (const [field, defaults, noun] of [
    ['requests', requests, 'request'],
    ['limits', limits, 'limit'],
  ] as const) {
    const own = container.resources?.[field] ?? {};
    const missing = Object.keys(defaults).filter((name) => !Object.hasOwn(own, name));
    if (missing.length === 0) continue;
    const set = Object.fromEntries(missing.map((name) => [name, defaults[name] ?? '']));
    container.resources = { ...container.resources, [field]: { ...own, ...set } };
    changes.push(`${missing.sort().join(', ')} ${noun} for ${list} ${container.name}`);
  }
  return changes;
}
