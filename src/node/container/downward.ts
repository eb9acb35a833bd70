/** The functions are pure. Source: "Downward API" of the v1.33 documentation; pkg/fieldpath and pkg/api/v1/resource (behavior). */

import type {
  Container,
  EphemeralContainer,
  ObjectFieldSelector,
  Pod,
  PodTermination,
  ResourceFieldSelector,
} from '../../api/generated/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import { parseQuantity, type Quantity, quantityMilli, quantityValue } from '../../machinery/quantity.ts';
import { containersByName } from './by-name.ts';

export interface DownwardFacts {
  nodeName: string;
  /** Addresses of the node, the primary one first. */
  hostIps: readonly string[];
  /** Addresses of the sandbox. A Pod with hostNetwork has hostIps instead. */
  podIps: readonly string[];
  /** Reported as the limits of containers without limits, except for huge pages. */
  allocatable: Readonly<Record<string, string>>;
}

const simpleFields: Readonly<Record<string, (pod: Pod, facts: DownwardFacts) => string>> = {
  'metadata.name': (pod) => pod.metadata.name,
  'metadata.namespace': (pod) => pod.metadata.namespace ?? '',
  'metadata.uid': (pod) => uidOf(pod),
  'metadata.labels': (pod) => formatMap(pod.metadata.labels ?? {}),
  'metadata.annotations': (pod) => formatMap(pod.metadata.annotations ?? {}),
  'spec.nodeName': (pod, facts) => pod.spec?.nodeName ?? facts.nodeName,
  'spec.serviceAccountName': (pod) => pod.spec?.serviceAccountName ?? '',
  'status.hostIP': (_pod, facts) => facts.hostIps[0] ?? '',
  'status.hostIPs': (_pod, facts) => facts.hostIps.join(','),
  'status.podIP': (pod, facts) => podAddresses(pod, facts)[0] ?? '',
  'status.podIPs': (pod, facts) => podAddresses(pod, facts).join(','),
  // Source: the specification of defer containers, "What an entry can know".
  'status.termination.reason': (pod) => ofTermination(pod, ({ reason }) => reason),
  'status.termination.deadline': (pod) => ofTermination(pod, ({ deadline }) => deadline),
  'status.termination.containers': (pod) => ofTermination(pod, ({ containers = [] }) => JSON.stringify(containers)),
  'status.termination.exitCodes': (pod) => ofTermination(pod, () => JSON.stringify(exitCodes(pod))),
};

const ofTermination = ({ status }: Pod, show: (termination: PodTermination) => string): string =>
  status?.termination === undefined ? '' : show(status.termination);

const exitCodes = ({ status }: Pod): Record<string, number> =>
  Object.fromEntries(
    (status?.containerStatuses ?? []).flatMap(({ name, state }) =>
      state?.terminated === undefined ? [] : [[name, state.terminated.exitCode]],
    ),
  );

/** Returns an empty list if the Pod has no hostNetwork and its sandbox has no address yet. */
export const podAddresses = (pod: Pod, facts: Pick<DownwardFacts, 'hostIps' | 'podIps'>): readonly string[] =>
  pod.spec?.hostNetwork === true ? facts.hostIps : facts.podIps;

/** Ignores properties that every JavaScript object inherits, such as `constructor`, since users choose the keys. */
export const ownValue = <T>(map: Readonly<Record<string, T>> | undefined, key: string): T | undefined =>
  map !== undefined && Object.hasOwn(map, key) ? map[key] : undefined;

/** Throws if the downward API does not support the field path. */
export function fieldValue(selector: ObjectFieldSelector, pod: Pod, facts: DownwardFacts): string {
  // spec.host is the old name of spec.nodeName. The API still accepts it.
  const path = selector.fieldPath === 'spec.host' ? 'spec.nodeName' : selector.fieldPath;
  const subscript = /^metadata\.(labels|annotations)\['(.*)'\]$/.exec(path);
  if (subscript !== null)
    return ownValue(pod.metadata[subscript[1] as 'labels' | 'annotations'], subscript[2] as string) ?? '';
  const field = ownValue(simpleFields, path);
  if (field === undefined) throw new Error(`unsupported fieldPath: ${path}`);
  return field(pod, facts);
}

/**
 * Returns the request or limit as text, in units of the divisor, rounded up. `self`: the container to use if the selector names none;
 * undefined for volumes. Throws if the container does not exist, the resource is not supported, or a quantity is invalid.
 */
export function resourceFieldValue(
  selector: ResourceFieldSelector,
  pod: Pod,
  self: Container | EphemeralContainer | undefined,
  facts: DownwardFacts,
): string {
  const container =
    selector.containerName === undefined || selector.containerName === ''
      ? self
      : containersByName(pod).get(selector.containerName);
  if (container === undefined) throw new Error(`container ${selector.containerName ?? ''} not found`);
  const [, list, resource] = /^(limits|requests)\.(.+)$/.exec(selector.resource) ?? [];
  if (list === undefined || resource === undefined || !isReadable(resource)) {
    throw new Error(`unsupported container resource : ${selector.resource}`);
  }
  const { limits, requests } = container.resources ?? {};
  const asked = parseQuantity((list === 'limits' ? limits : requests)?.[resource] ?? limits?.[resource] ?? '0');
  // A limit of zero means no limit, except for huge pages: a container without a limit for huge pages cannot use any.
  const isUnlimited = list === 'limits' && asked?.nano === 0n && !resource.startsWith('hugepages-');
  const amount = isUnlimited ? parseQuantity(facts.allocatable[resource] ?? '0') : asked;
  const divisor = parseQuantity(selector.divisor ?? '0');
  if (amount === undefined || divisor === undefined) throw new Error(`invalid quantity for ${selector.resource}`);
  return resource === 'cpu'
    ? dividedUp(amount, divisor, quantityMilli, 1000n)
    : dividedUp(amount, divisor, quantityValue, 1n);
}

const isReadable = (resource: string): boolean =>
  resource === 'cpu' || resource === 'memory' || resource === 'ephemeral-storage' || resource.startsWith('hugepages-');

function dividedUp(amount: Quantity, divisor: Quantity, read: (quantity: Quantity) => bigint, unit: bigint): string {
  const by = divisor.nano === 0n ? unit : read(divisor);
  return String((read(amount) + by - 1n) / by);
}

const formatMap = (map: Readonly<Record<string, string>>): string =>
  Object.keys(map)
    .sort()
    .map((key) => `${key}=${goQuote(map[key] as string)}`)
    .join('\n');

const escapes: Readonly<Record<string, string>> = {
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
  '"': '\\"',
};

/** Quotes the text like Go's %q. */
const goQuote = (text: string): string =>
  `"${text.replace(/["\\]|[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, (c) => escapes[c] ?? escapedCode(c.codePointAt(0) ?? 0))}"`;

function escapedCode(code: number): string {
  const hex = code.toString(16);
  if (code < 0x80) return `\\x${hex.padStart(2, '0')}`;
  return code < 0x10000 ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`;
}
