/**
 * The functions are pure.
 * Source: "Node-pressure Eviction", "Pod selection for kubelet eviction", and pkg/kubelet/eviction/helpers.go of v1.33 (order and wording).
 */
import type { AnyContainer } from '../../api/core/v1/pod/containers.ts';
import { effectiveRequests, resourceQuantity, summedLimit } from '../../api/core/v1/pod/resources.ts';
import type { Pod } from '../../api/generated/types.ts';
import { formatQuantity, parseQuantity, type Quantity, quantityValue } from '../../machinery/quantity.ts';
import { containersByName, ephemeralContainers, volumesByName } from '../container/by-name.ts';
import type { DiskUse } from '../usage/folder-usage.ts';
import { amountOf, type Observations, resourceOf, type StarvedResource, type Threshold } from './thresholds.ts';

/** For a container that has ended, `memoryBytes` is 0 and only `logs` can be set. */
export interface ContainerUse {
  memoryBytes: number;
  rootFs?: DiskUse;
  /** The container's logs and termination messages; the container controls the size of both. */
  logs?: DiskUse;
  processes?: number;
}

/** A value that was not measured is absent, or its map is empty. */
export interface PodUse {
  containers: ReadonlyMap<string, ContainerUse>;
  /** The emptyDirs, by volume name. */
  volumes: ReadonlyMap<string, DiskUse>;
  /** All containers share this file and can write to it. */
  etcHosts?: DiskUse;
}

export interface Disks {
  separateImages: boolean;
}

const bytesOf = (quantity: Quantity | undefined): number =>
  quantity === undefined ? 0 : Number(quantityValue(quantity));

const sum = (numbers: Iterable<number>): number => [...numbers].reduce((total, each) => total + each, 0);

const memoryOf = (use: PodUse): number => sum([...use.containers.values()].map((each) => each.memoryBytes));

function diskOf(pod: Pod, use: PodUse, { signal }: Threshold, { separateImages }: Disks): DiskUse {
  const images = separateImages && signal.startsWith('imagefs');
  const parts: (DiskUse | undefined)[] = [];
  for (const { rootFs, logs } of use.containers.values()) {
    if (images || !separateImages) parts.push(rootFs);
    if (!images) parts.push(logs);
  }
  if (!images) parts.push(...volumesOnDisk(pod, use), use.etcHosts);
  return {
    bytes: sum(parts.map((part) => part?.bytes ?? 0)),
    inodes: sum(parts.map((part) => part?.inodes ?? 0)),
  };
}

/**
 * Returns the Pods in the order of eviction: first the Pods that use more than they request, then by ascending priority, then by how much
 * more they use. Inodes and processes cannot be requested, so only priority and usage count for them. Unknown usage counts as infinite.
 */
export function rankForEviction(
  pods: readonly Pod[],
  useOf: (pod: Pod) => PodUse | undefined,
  threshold: Threshold,
  disks: Disks,
): Pod[] {
  const resource = resourceOf(threshold);
  const rank = (pod: Pod): number[] => {
    const use = useOf(pod);
    const priority = pod.spec?.priority ?? 0;
    if (resource === 'pids') {
      const processes = use === undefined ? Infinity : sum([...use.containers.values()].map((c) => c.processes ?? 0));
      return [priority, -processes];
    }
    if (use === undefined) return [0, priority, -Infinity];
    if (resource === 'inodes') return [0, priority, -diskOf(pod, use, threshold, disks).inodes];
    const used = resource === 'memory' ? memoryOf(use) : diskOf(pod, use, threshold, disks).bytes;
    const over = used - bytesOf(effectiveRequests(pod).get(resource));
    return [over > 0 ? 0 : 1, priority, -over];
  };
  const ranked = pods.map((pod) => ({ pod, rank: rank(pod) }));
  return ranked.sort((a, b) => compare(a.rank, b.rank)).map(({ pod }) => pod);
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (const [index, value] of a.entries()) {
    const other = b[index] ?? 0;
    if (value !== other) return value < other ? -1 : 1;
  }
  return 0;
}

const inFormat =
  (format: Quantity['format']) =>
  (count: number): string =>
    formatQuantity({ nano: BigInt(Math.round(count)) * 1_000_000_000n, format });
const binary = inFormat('BinarySI');
const decimal = inFormat('DecimalSI');

export function evictionMessage(
  pod: Pod,
  use: PodUse | undefined,
  threshold: Threshold,
  observations: Observations,
): string {
  const resource = resourceOf(threshold);
  const seen = observations[threshold.signal];
  let message = `The node was low on resource: ${resource}. `;
  if (seen !== undefined) {
    // Source: GetThresholdQuantity of v1.33: a percentage of the capacity is formatted like bytes, whatever the resource.
    const counted = resource === 'inodes' || resource === 'pids' ? decimal : binary;
    const quantity = ('part' in threshold.value ? binary : counted)(amountOf(threshold.value, seen.capacity));
    message += `Threshold quantity: ${quantity}, available: ${counted(seen.available)}. `;
  }
  for (const [name, container] of use?.containers ?? []) {
    const used = containerUse(resource, container);
    const spec = withResources(pod, name);
    const request = resourceQuantity(spec?.resources?.requests, resource);
    if (spec === undefined || used === undefined || used <= bytesOf(request)) continue;
    const asked = request === undefined ? '0' : formatQuantity(request);
    message += `Container ${name} was using ${binary(used)}, request is ${asked}, has larger consumption of ${resource}. `;
  }
  return message;
}

/** Ephemeral containers cannot request resources. */
function withResources(pod: Pod, name: string): AnyContainer | undefined {
  const container = containersByName(pod).get(name);
  return container === undefined || ephemeralContainers(pod).has(container) ? undefined : container;
}

function containerUse(resource: StarvedResource, { memoryBytes, rootFs, logs }: ContainerUse): number | undefined {
  if (resource === 'memory') return memoryBytes;
  if (resource !== 'ephemeral-storage' || rootFs === undefined) return undefined;
  return rootFs.bytes + (logs?.bytes ?? 0);
}

export const hasDiskLimits = (pod: Pod): boolean =>
  pod.spec?.volumes?.some(({ emptyDir }) => emptyDir?.sizeLimit !== undefined) === true ||
  summedLimit(pod, 'ephemeral-storage') !== undefined;

/**
 * Returns the eviction message if the Pod exceeds one of its disk limits; undefined otherwise. The sum of the containers' limits applies to
 * the whole Pod, including containers without a limit.
 */
export function brokenDiskLimit(pod: Pod, use: PodUse, { separateImages }: Disks): string | undefined {
  for (const { name, emptyDir } of pod.spec?.volumes ?? []) {
    const limit = parseQuantity(emptyDir?.sizeLimit ?? '0');
    if (limit === undefined || limit.nano <= 0n) continue;
    if ((use.volumes.get(name)?.bytes ?? 0) > bytesOf(limit))
      return `Usage of EmptyDir volume "${name}" exceeds the limit "${formatQuantity(limit)}". `;
  }
  const ofPod = summedLimit(pod, 'ephemeral-storage');
  const total = sum([
    ...[...use.containers.values()].map(({ rootFs, logs }) => (rootFs?.bytes ?? 0) + (logs?.bytes ?? 0)),
    ...volumesOnDisk(pod, use).map(({ bytes }) => bytes),
    use.etcHosts?.bytes ?? 0,
  ]);
  if (ofPod !== undefined && total > bytesOf(ofPod))
    return `Pod ephemeral local storage usage exceeds the total limit of containers ${formatQuantity(ofPod)}. `;
  for (const [name, { rootFs, logs }] of use.containers) {
    const limit = resourceQuantity(withResources(pod, name)?.resources?.limits, 'ephemeral-storage');
    const used = (logs?.bytes ?? 0) + (separateImages ? 0 : (rootFs?.bytes ?? 0));
    if (limit !== undefined && limit.nano > 0n && used > bytesOf(limit))
      return `Container ${name} exceeded its local ephemeral storage limit "${formatQuantity(limit)}". `;
  }
  return undefined;
}

const volumesOnDisk = (pod: Pod, { volumes }: PodUse): DiskUse[] =>
  [...volumes]
    .filter(([volume]) => (volumesByName(pod).get(volume)?.emptyDir?.medium ?? '') === '')
    .map(([, use]) => use);
