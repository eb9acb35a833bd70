/** Source: v1.33 "Node metrics data", the kubelet's resource and volume metrics, cAdvisor's names. */

import type { Pod } from '../../api/generated/types.ts';
import { family, type MetricFamily, type MetricSample, single } from '../../platform/metrics.ts';
import type { DiskUsage, InterfaceUsage } from './machine-usage.ts';
import type { UsedContainer, UsedPod } from './node-pods.ts';
import type { Sample } from './sampler.ts';
import type { VolumeUsage } from './volume-usage.ts';

type Labels = Readonly<Record<string, string>>;

interface Metric<Measured, Value = number> {
  type: 'counter' | 'gauge';
  name: string;
  help: string;
  valueIn(measured: Measured): Value;
}

/** A container has no sample if its value is undefined. */
type ContainerMetric = Metric<UsedContainer, number | undefined>;

const seconds = (nanoSeconds: number): number => nanoSeconds / 1e9;
const cpuSeconds = ({ usage }: UsedContainer): number => seconds(usage.cpuNanoSeconds);
const workingSetBytes = ({ usage }: UsedContainer): number => usage.workingSetBytes;

const CONTAINER_CPU: ContainerMetric = {
  type: 'counter',
  name: 'container_cpu_usage_seconds_total',
  help: 'CPU time of the container, in core-seconds.',
  valueIn: cpuSeconds,
};
const CONTAINER_MEMORY: ContainerMetric = {
  type: 'gauge',
  name: 'container_memory_working_set_bytes',
  help: 'Working set of the container, in bytes.',
  valueIn: workingSetBytes,
};
const CONTAINER_START: ContainerMetric = {
  type: 'gauge',
  name: 'container_start_time_seconds',
  help: 'When the container started, in seconds since the epoch.',
  valueIn: ({ startedAt }) => (startedAt === undefined ? undefined : startedAt / 1000),
};

const CADVISOR_MEMORY: readonly ContainerMetric[] = [
  {
    type: 'gauge',
    name: 'container_memory_usage_bytes',
    help: 'Memory of the container, including all of its page cache, in bytes.',
    valueIn: ({ usage }) => usage.usageBytes,
  },
  {
    type: 'gauge',
    name: 'container_memory_rss',
    help: 'Anonymous memory of the container, in bytes.',
    valueIn: ({ usage }) => usage.rssBytes,
  },
  {
    type: 'gauge',
    name: 'container_fs_usage_bytes',
    help: 'Bytes that the container has written outside of its volumes.',
    valueIn: ({ usage }) => usage.rootFs?.usedBytes,
  },
];
const CADVISOR_LAST_SEEN: ContainerMetric = {
  type: 'gauge',
  name: 'container_last_seen',
  help: 'When the container was last measured, in seconds since the epoch.',
  valueIn: ({ usage }) => usage.at / 1000,
};

const POD_METRICS: readonly Metric<UsedContainer>[] = [
  {
    type: 'counter',
    name: 'pod_cpu_usage_seconds_total',
    help: 'CPU time of the running containers of the Pod, in core-seconds.',
    valueIn: cpuSeconds,
  },
  {
    type: 'gauge',
    name: 'pod_memory_working_set_bytes',
    help: 'Working set of the running containers of the Pod, in bytes.',
    valueIn: workingSetBytes,
  },
];

const NETWORK_METRICS: readonly Metric<InterfaceUsage>[] = [
  {
    type: 'counter',
    name: 'container_network_receive_bytes_total',
    help: 'Bytes that the Pod has received.',
    valueIn: ({ rxBytes }) => rxBytes,
  },
  {
    type: 'counter',
    name: 'container_network_receive_errors_total',
    help: 'Errors when receiving data for the Pod.',
    valueIn: ({ rxErrors }) => rxErrors,
  },
  {
    type: 'counter',
    name: 'container_network_transmit_bytes_total',
    help: 'Bytes that the Pod has sent.',
    valueIn: ({ txBytes }) => txBytes,
  },
  {
    type: 'counter',
    name: 'container_network_transmit_errors_total',
    help: 'Errors when sending data of the Pod.',
    valueIn: ({ txErrors }) => txErrors,
  },
];

/** Returns the metrics of /metrics/resource. */
export function resourceMetrics(pods: readonly UsedPod[], { machine }: Sample): MetricFamily[] {
  const labelsOf = (pod: UsedPod, { name }: UsedContainer): Labels => ({ container: name, ...podLabels(pod) });
  const starts = containerFamily(CONTAINER_START, pods, labelsOf);
  return [
    containerFamily(CONTAINER_CPU, pods, labelsOf),
    containerFamily(CONTAINER_MEMORY, pods, labelsOf),
    { ...starts, samples: starts.samples.map(({ labels, value }) => ({ labels, value })) },
    family(
      'counter',
      'node_cpu_usage_seconds_total',
      'CPU time of the node, in core-seconds.',
      single(seconds(machine.cpuNanoSeconds), machine.at),
    ),
    family(
      'gauge',
      'node_memory_working_set_bytes',
      'Working set of the node, in bytes.',
      single(machine.memory.workingSetBytes, machine.at),
    ),
    ...POD_METRICS.map((metric) => podFamily(metric, pods)),
    family('gauge', 'resource_scrape_error', '1 if there was an error while reading, 0 otherwise.', single(0)),
  ];
}

/**
 * Returns the metrics of /metrics/cadvisor. `interfaces`: the interfaces of each Pod, in the order of `pods`; undefined for a Pod whose
 * network is the host's or unknown.
 */
export function cadvisorMetrics(
  pods: readonly UsedPod[],
  interfaces: readonly (readonly InterfaceUsage[] | undefined)[],
  machine: { cores: number; memoryBytes: number },
): MetricFamily[] {
  const ofContainers = (metric: ContainerMetric, more: Labels = {}): MetricFamily =>
    containerFamily(metric, pods, (pod, { name, image, usage: { id } }) => ({
      container: name,
      ...more,
      id,
      image,
      name: id,
      ...podLabels(pod),
    }));
  return [
    ofContainers(CONTAINER_CPU, { cpu: 'total' }),
    ofContainers(CONTAINER_MEMORY),
    ...CADVISOR_MEMORY.map((metric) => ofContainers(metric)),
    ofContainers(CONTAINER_START),
    ofContainers(CADVISOR_LAST_SEEN),
    ...NETWORK_METRICS.map((metric) => networkFamily(metric, pods, interfaces)),
    family('gauge', 'machine_cpu_cores', 'Cores of the machine.', single(machine.cores)),
    family('gauge', 'machine_memory_bytes', 'Memory of the machine, in bytes.', single(machine.memoryBytes)),
  ];
}

const podLabels = ({ pod }: UsedPod): Labels => ({
  namespace: pod.metadata.namespace ?? '',
  pod: pod.metadata.name,
});

function containerFamily(
  { type, name, help, valueIn }: ContainerMetric,
  pods: readonly UsedPod[],
  labelsOf: (pod: UsedPod, container: UsedContainer) => Labels,
): MetricFamily {
  const samples = pods.flatMap((pod) =>
    pod.containers.flatMap((container): MetricSample[] => {
      const value = valueIn(container);
      return value === undefined ? [] : [{ labels: labelsOf(pod, container), value, at: container.usage.at }];
    }),
  );
  return family(type, name, help, samples);
}

function podFamily({ type, name, help, valueIn }: Metric<UsedContainer>, pods: readonly UsedPod[]): MetricFamily {
  const samples = pods.map((pod) => ({
    labels: podLabels(pod),
    value: pod.containers.reduce((total, container) => total + valueIn(container), 0),
    at: pod.containers[0]?.usage.at ?? 0,
  }));
  return family(type, name, help, samples);
}

function networkFamily(
  { type, name, help, valueIn }: Metric<InterfaceUsage>,
  pods: readonly UsedPod[],
  interfaces: readonly (readonly InterfaceUsage[] | undefined)[],
): MetricFamily {
  const samples = pods.flatMap((pod, index) =>
    (interfaces[index] ?? []).map((each) => ({
      labels: { interface: each.name, id: pod.sandboxId ?? '', ...podLabels(pod) },
      value: valueIn(each),
    })),
  );
  return family(type, name, help, samples);
}

/** A claim has at most one sample per metric, even if several Pods use it. */
export function volumeMetrics(claims: readonly { pod: Pod; usage: VolumeUsage }[]): MetricFamily[] {
  const byClaim = new Map(claims.map((each) => [`${each.pod.metadata.namespace}/${each.usage.claim}`, each.usage.own]));
  const figure = (name: string, help: string, of: (disk: DiskUsage) => number): MetricFamily =>
    family(
      'gauge',
      `kubelet_volume_stats_${name}`,
      help,
      [...byClaim].flatMap(([key, disk]) => {
        const [namespace = '', persistentvolumeclaim = ''] = key.split('/');
        return disk === undefined ? [] : [{ labels: { namespace, persistentvolumeclaim }, value: of(disk) }];
      }),
    );
  return [
    figure('available_bytes', 'Free bytes of the volume.', (disk) => disk.availableBytes),
    figure('capacity_bytes', 'Capacity of the volume, in bytes.', (disk) => disk.capacityBytes),
    figure('inodes', 'Total number of inodes of the volume.', (disk) => disk.inodes),
    figure('inodes_free', 'Free inodes of the volume.', (disk) => disk.inodesFree),
    figure('inodes_used', 'Used inodes of the volume.', (disk) => disk.inodes - disk.inodesFree),
    figure('used_bytes', 'Used bytes of the volume.', (disk) => disk.usedBytes),
  ];
}
