/**
 * The effective requests and limits of a Pod, computed from the requests and limits of its containers.
 *
 * Init containers run sequentially and before the app containers, so the Pod needs the maximum of the largest init container and the sum of
 * the app containers. A sidecar keeps running, so its amount is added to the sum of the app containers and to each later init container.
 * Defer containers also run sequentially: PreExit entries while all app containers run, PostExit entries while only the sidecars run. Defer
 * containers without a request or limit above zero are ignored. The Pod's overhead is added to the requests, and to those limits that
 * exist.
 * Sources: Init Containers, "Resources" (v1.23 pages); KEP-753; resource helpers of v1.33; the specification of defer containers.
 */
import {
  addQuantities,
  formatQuantity,
  maxQuantity,
  parseQuantity,
  type Quantity,
} from '../../../../machinery/quantity.ts';
import type { Container, DeferContainer, Pod, PodSpec, ResourceRequirements } from '../../../generated/types.ts';
import { isSidecar, runsBeforeExit, specOf } from './containers.ts';

/** Quantities by resource name (cpu in cores, memory in bytes). */
export type ResourceQuantities = ReadonlyMap<string, Quantity>;

type ResourceTexts = Readonly<Record<string, string>>;

/** Omits invalid quantities, which validation rejects. */
export function resourceQuantities(texts: ResourceTexts | undefined): Map<string, Quantity> {
  const quantities = new Map<string, Quantity>();
  for (const [name, text] of Object.entries(texts ?? {})) {
    const quantity = parseQuantity(text);
    if (quantity !== undefined) quantities.set(name, quantity);
  }
  return quantities;
}

/** Parses only the quantity of the resource `name`, because `texts` may contain many others; undefined if it is absent or invalid. */
export const resourceQuantity = (texts: ResourceTexts | undefined, name: string): Quantity | undefined =>
  texts !== undefined && Object.hasOwn(texts, name) ? parseQuantity(texts[name] ?? '') : undefined;

/**
 * The defer containers with a request or limit above zero. The others run within the Pod's control group and change neither the QoS class
 * nor the effective resources.
 */
export const countedDefers = ({ deferContainers = [] }: Pick<PodSpec, 'deferContainers'>): DeferContainer[] =>
  deferContainers.filter(({ resources }) => resources !== undefined && hasAmounts(resources));

const withAmounts = new WeakMap<ResourceRequirements, boolean>();

/** The object must be immutable, because the result is cached for it. */
function hasAmounts(resources: ResourceRequirements): boolean {
  const known = withAmounts.get(resources);
  if (known !== undefined) return known;
  const found = [resources.requests, resources.limits].some((texts) =>
    Object.values(texts ?? {}).some((text) => (parseQuantity(text)?.nano ?? 0n) > 0n),
  );
  withAmounts.set(resources, found);
  return found;
}

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
  // The maximum so far includes the sum of the sidecars so far, so a container can only change the resources that it names itself. Adding
  // all resources of the sidecars for each container would take quadratic time.
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

function requestsOf({ resources }: Container): ResourceQuantities {
  const requests = resourceQuantities(resources?.requests);
  for (const [name, text] of Object.entries(resources?.limits ?? {})) {
    const limit = requests.has(name) ? undefined : parseQuantity(text);
    if (limit !== undefined) requests.set(name, limit);
  }
  return requests;
}

/** The Pod's requests without the overhead. A limit does not count as a request. */
export const namedRequests = (pod: Pod): ResourceQuantities =>
  aggregate(pod, ({ resources }) => resourceQuantities(resources?.requests));

/** The Pod's limits without the overhead. Containers without a limit add nothing. */
export const namedLimits = (pod: Pod): ResourceQuantities =>
  aggregate(pod, ({ resources }) => resourceQuantities(resources?.limits));

const requestsOfPods = new WeakMap<Pod, ResourceQuantities>();

/**
 * The requests that the scheduler and the node count for the Pod. Each scheduling decision reads the requests of all Pods of a node.
 * Therefore the result is cached for the Pod object, which must be immutable.
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
 * The maximum amounts that the Pod may use. The result omits a resource for which any container has no limit. Defer containers that
 * countedDefers() omits are ignored, because the Pod's control group limits them.
 */
export function effectiveLimits(pod: Pod): Map<string, Quantity> {
  const limits = summedLimits(pod);
  const spec = specOf(pod);
  const containers = [...(spec.initContainers ?? []), ...spec.containers, ...countedDefers(spec)];
  for (const name of limits.keys()) {
    if (containers.some((container) => container.resources?.limits?.[name] === undefined)) limits.delete(name);
  }
  return limits;
}

/** The Pod's limits with the overhead, as upstream computes them: a container without a limit for a resource adds nothing. */
export const summedLimits = (pod: Pod): Map<string, Quantity> => sumLimits(pod, resourceQuantities);

/** The value for one resource in summedLimits(), without parsing the other resources. */
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
