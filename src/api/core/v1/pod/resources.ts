/**
 * What a Pod as a whole requests and may use, of its containers' resources.
 *
 * Init containers run one after another and before the app containers, so the Pod needs the larger of the largest
 * init container and the sum of the app containers. A sidecar keeps running: it adds to the app containers' sum and
 * to every init container after it. Defer containers run one after another as well, before the exit of the app containers
 * beside all of them, after it beside the sidecars; one without requests and limits counts nowhere. Overhead is added on top.
 * Sources: Init Containers, "Resources" (v1.23 pages); KEP-753; resource helpers of v1.33; the specification of defer
 * containers.
 */
import {
  addQuantities,
  formatQuantity,
  maxQuantity,
  parseQuantity,
  type Quantity,
} from '../../../../machinery/quantity.ts';
import type { Container, DeferContainer, Pod, PodSpec, ResourceRequirements } from '../../../generated/types.ts';
import { isSidecar, runsBeforeExit } from './containers.ts';

/** Quantities by resource name (cpu in cores, memory in bytes). */
export type ResourceQuantities = ReadonlyMap<string, Quantity>;

type ResourceTexts = Readonly<Record<string, string>>;

/** Of the texts that the API serves; what is no quantity is left out (validation refuses it). */
export function resourceQuantities(texts: ResourceTexts | undefined): Map<string, Quantity> {
  const quantities = new Map<string, Quantity>();
  for (const [name, text] of Object.entries(texts ?? {})) {
    const quantity = parseQuantity(text);
    if (quantity !== undefined) quantities.set(name, quantity);
  }
  return quantities;
}

/** Of one resource; the others, of which there may be a hundred thousand, are not read. */
export const resourceQuantity = (texts: ResourceTexts | undefined, name: string): Quantity | undefined =>
  texts !== undefined && Object.hasOwn(texts, name) ? parseQuantity(texts[name] ?? '') : undefined;

/**
 * The defer containers that count in what the Pod requests and may use. One without requests and limits (amounts of zero
 * are none) runs in the Pod's control group beside what is there: it changes neither the class nor the effective resources.
 */
export const countedDefers = ({ deferContainers = [] }: Pick<PodSpec, 'deferContainers'>): DeferContainer[] =>
  deferContainers.filter(({ resources }) => resources !== undefined && hasAmounts(resources));

const withAmounts = new WeakMap<ResourceRequirements, boolean>();

/** Remembered while the object lives, which must not change any more. */
function hasAmounts(resources: ResourceRequirements): boolean {
  const known = withAmounts.get(resources);
  if (known !== undefined) return known;
  const found = [resources.requests, resources.limits].some((texts) =>
    Object.values(texts ?? {}).some((text) => (parseQuantity(text)?.nano ?? 0n) > 0n),
  );
  withAmounts.set(resources, found);
  return found;
}

/** The canonical texts, sorted by name. */
export const resourceTexts = (quantities: ResourceQuantities): Record<string, string> =>
  Object.fromEntries(
    [...quantities].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, quantity]) => [name, formatQuantity(quantity)]),
  );

function addResources(into: Map<string, Quantity>, more: ResourceQuantities): void {
  for (const [name, quantity] of more) {
    const current = into.get(name);
    into.set(name, current === undefined ? quantity : addQuantities(current, quantity));
  }
}

function raiseResources(into: Map<string, Quantity>, other: ResourceQuantities): void {
  for (const [name, quantity] of other) {
    const current = into.get(name);
    into.set(name, current === undefined ? quantity : maxQuantity(current, quantity));
  }
}

/** Of `quantities`, those of the resources that `named` names as well. */
function sharedResources(quantities: ResourceQuantities, named: ResourceQuantities): Map<string, Quantity> {
  const shared = new Map<string, Quantity>();
  for (const name of named.keys()) {
    const quantity = quantities.get(name);
    if (quantity !== undefined) shared.set(name, quantity);
  }
  return shared;
}

function aggregate(pod: Pod, of: (container: Container) => ResourceQuantities): Map<string, Quantity> {
  const running = new Map<string, Quantity>();
  for (const container of pod.spec?.containers ?? []) addResources(running, of(container));
  const sidecars = new Map<string, Quantity>();
  // It has all that the sidecars so far add up to, so a container changes only the resources that it names itself:
  // going through those of all sidecars for each container takes quadratic time.
  const initializing = new Map<string, Quantity>();
  for (const container of pod.spec?.initContainers ?? []) {
    const own = of(container);
    if (isSidecar(container)) {
      addResources(running, own);
      addResources(sidecars, own);
      raiseResources(initializing, sharedResources(sidecars, own));
    } else {
      const withSidecars = new Map(own);
      addResources(withSidecars, sharedResources(sidecars, own));
      raiseResources(initializing, withSidecars);
    }
  }
  const before = new Map<string, Quantity>();
  const after = new Map<string, Quantity>();
  for (const entry of countedDefers(pod.spec ?? {})) raiseResources(runsBeforeExit(entry) ? before : after, of(entry));
  addResources(running, before);
  addResources(sidecars, after);
  for (const phase of [initializing, sidecars]) raiseResources(running, phase);
  return running;
}

/** A container without a request requests its limit. */
function requestsOf({ resources }: Container): ResourceQuantities {
  const requests = resourceQuantities(resources?.requests);
  for (const [name, text] of Object.entries(resources?.limits ?? {})) {
    const limit = requests.has(name) ? undefined : parseQuantity(text);
    if (limit !== undefined) requests.set(name, limit);
  }
  return requests;
}

const requestsOfPods = new WeakMap<Pod, ResourceQuantities>();

/**
 * What the scheduler, the node and quotas count for the Pod. Remembered while the Pod lives, which must not change any more:
 * each decision of the scheduler asks for those of all Pods of a node.
 */
export function effectiveRequests(pod: Pod): ResourceQuantities {
  const known = requestsOfPods.get(pod);
  if (known !== undefined) return known;
  const requests = aggregate(pod, requestsOf);
  addResources(requests, resourceQuantities(pod.spec?.overhead));
  requestsOfPods.set(pod, requests);
  return requests;
}

/**
 * What the Pod may use at most. A container without a limit for a resource may use any amount of it, so a resource
 * that one container leaves open is unlimited for the Pod, and absent here. A defer container that does not count
 * leaves nothing open: the limit of the Pod bounds it.
 */
export function effectiveLimits(pod: Pod): Map<string, Quantity> {
  const limits = summedLimits(pod);
  const spec = pod.spec ?? { containers: [] };
  const containers = [...(spec.initContainers ?? []), ...spec.containers, ...countedDefers(spec)];
  for (const name of limits.keys()) {
    if (containers.some((container) => container.resources?.limits?.[name] === undefined)) limits.delete(name);
  }
  return limits;
}

/** The limits that containers have, where others have none as well: what upstream calls the limits of the Pod. */
export const summedLimits = (pod: Pod): Map<string, Quantity> => sumLimits(pod, resourceQuantities);

/** That of one resource. */
export const summedLimit = (pod: Pod, name: string): Quantity | undefined =>
  sumLimits(pod, (texts) => {
    const quantity = resourceQuantity(texts, name);
    return new Map(quantity === undefined ? [] : [[name, quantity]]);
  }).get(name);

function sumLimits(pod: Pod, read: (texts: ResourceTexts | undefined) => ResourceQuantities): Map<string, Quantity> {
  const limits = aggregate(pod, ({ resources }) => read(resources?.limits));
  for (const [name, quantity] of read(pod.spec?.overhead)) {
    const limit = limits.get(name);
    if (limit !== undefined) limits.set(name, addQuantities(limit, quantity));
  }
  return limits;
}
