/**
 * The downward API: a Pod's fields and a container's resources as text, for environment variables and for volumes. Pure.
 * Source: "Downward API" of the v1.33 documentation; pkg/fieldpath and pkg/api/v1/resource (behaviour).
 */
import type {
  Container,
  EphemeralContainer,
  ObjectFieldSelector,
  Pod,
  ResourceFieldSelector,
} from '../api/generated/types.ts';
import { parseQuantity, type Quantity, quantityMilli, quantityValue } from '../machinery/quantity.ts';

/** What the Pod's object does not tell. */
export interface DownwardFacts {
  nodeName: string;
  /** Addresses of the node, the primary one first. */
  hostIps: readonly string[];
  /** Addresses of the sandbox; the node's are used for a Pod on the host's network. */
  podIps: readonly string[];
  /** Allocatable of the node: the limits of containers that have none. */
  allocatable: Readonly<Record<string, string>>;
}

const simpleFields: Readonly<Record<string, (pod: Pod, facts: DownwardFacts) => string>> = {
  'metadata.name': (pod) => pod.metadata.name,
  'metadata.namespace': (pod) => pod.metadata.namespace ?? '',
  'metadata.uid': (pod) => pod.metadata.uid ?? '',
  'metadata.labels': (pod) => formatMap(pod.metadata.labels ?? {}),
  'metadata.annotations': (pod) => formatMap(pod.metadata.annotations ?? {}),
  'spec.nodeName': (pod, facts) => pod.spec?.nodeName ?? facts.nodeName,
  'spec.serviceAccountName': (pod) => pod.spec?.serviceAccountName ?? '',
  'status.hostIP': (_pod, facts) => facts.hostIps[0] ?? '',
  'status.hostIPs': (_pod, facts) => facts.hostIps.join(','),
  'status.podIP': (pod, facts) => podAddresses(pod, facts)[0] ?? '',
  'status.podIPs': (pod, facts) => podAddresses(pod, facts).join(','),
};

/** The addresses under which the Pod is reached. */
export const podAddresses = (pod: Pod, facts: Pick<DownwardFacts, 'hostIps' | 'podIps'>): readonly string[] =>
  pod.spec?.hostNetwork === true ? facts.hostIps : facts.podIps;

/** Throws where the path is not one of the downward API. */
export function fieldValue(selector: ObjectFieldSelector, pod: Pod, facts: DownwardFacts): string {
  const path = selector.fieldPath;
  const subscript = /^metadata\.(labels|annotations)\['(.*)'\]$/.exec(path);
  if (subscript !== null) return pod.metadata[subscript[1] as 'labels' | 'annotations']?.[subscript[2] as string] ?? '';
  const field = simpleFields[path];
  if (field === undefined) throw new Error(`unsupported fieldPath: ${path}`);
  return field(pod, facts);
}

/** Throws where the container or the resource does not exist. `self`: the container of an environment variable. */
export function resourceFieldValue(
  selector: ResourceFieldSelector,
  pod: Pod,
  self: Container | EphemeralContainer | undefined,
  facts: DownwardFacts,
): string {
  const container =
    selector.containerName === undefined || selector.containerName === ''
      ? self
      : [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])].find(
          ({ name }) => name === selector.containerName,
        );
  if (container === undefined) throw new Error(`container ${selector.containerName ?? ''} not found`);
  const [, list, resource] = /^(limits|requests)\.(.+)$/.exec(selector.resource) ?? [];
  if (list === undefined || resource === undefined || !isReadable(resource)) {
    throw new Error(`unsupported container resource : ${selector.resource}`);
  }
  const limit = container.resources?.limits?.[resource];
  const text =
    list === 'limits' ? (limit ?? facts.allocatable[resource]) : (container.resources?.requests?.[resource] ?? limit);
  const amount = parseQuantity(text ?? '0');
  const divisor = parseQuantity(selector.divisor ?? '0');
  if (amount === undefined || divisor === undefined) throw new Error(`invalid quantity for ${selector.resource}`);
  return resource === 'cpu'
    ? dividedUp(amount, divisor, quantityMilli, 1000n)
    : dividedUp(amount, divisor, quantityValue, 1n);
}

const isReadable = (resource: string): boolean =>
  resource === 'cpu' || resource === 'memory' || resource === 'ephemeral-storage' || resource.startsWith('hugepages-');

/** A divisor of zero means one unit. */
function dividedUp(amount: Quantity, divisor: Quantity, read: (quantity: Quantity) => bigint, unit: bigint): string {
  const by = divisor.nano === 0n ? unit : read(divisor);
  return String((read(amount) + by - 1n) / by);
}

/** `key="value"`, one a line, sorted by key. */
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

/** Quoted as Go's %q does it. */
const goQuote = (text: string): string =>
  `"${text.replace(/[\x00-\x1f\x7f"\\]/g, (c) => escapes[c] ?? `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`)}"`;
