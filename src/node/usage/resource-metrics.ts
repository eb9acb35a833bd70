/**
 * The metrics of /metrics/resource and /metrics/cadvisor, and the volume metrics of /metrics. Source: v1.33 "Node metrics data",
 * the kubelet's resource and volume metrics, cAdvisor's names.
 */

import type { Pod } from '../../api/generated/types.ts';
import { family, type MetricFamily, type MetricSample, single } from '../../platform/metrics.ts';
import type { DiskUsage, InterfaceUsage } from './machine-usage.ts';
import type { UsedContainer, UsedPod } from './node-pods.ts';
import type { Sample } from './sampler.ts';
import type { VolumeUsage } from './volume-usage.ts';

type Figure = (container: UsedContainer) => number | undefined;

const podLabels = ({ pod }: UsedPod): Record<string, string> => ({
  namespace: pod.metadata.namespace ?? '',
  pod: pod.metadata.name,
});

const seconds = (nanoSeconds: number): number => nanoSeconds / 1e9;
const startTime: Figure = ({ startedAt }) => (startedAt === undefined ? undefined : startedAt / 1000);

const sum = (pod: UsedPod, figure: (container: UsedContainer) => number): number =>
  pod.containers.reduce((total, container) => total + figure(container), 0);

/** CPU and memory of the node, the Pods and the containers. */
export function resourceMetrics(pods: readonly UsedPod[], { machine }: Sample): MetricFamily[] {
  const ofContainers = (figure: Figure): MetricSample[] =>
    pods.flatMap((pod) =>
      pod.containers.flatMap((container) => {
        const value = figure(container);
        const labels = { container: container.name, ...podLabels(pod) };
        return value === undefined ? [] : [{ labels, value, at: container.usage.at }];
      }),
    );
  const ofPods = (figure: (container: UsedContainer) => number): MetricSample[] =>
    pods.map((pod) => ({ labels: podLabels(pod), value: sum(pod, figure), at: pod.containers[0]?.usage.at ?? 0 }));
  const cpu = ({ usage }: UsedContainer): number => seconds(usage.cpuNanoSeconds);
  const memory = ({ usage }: UsedContainer): number => usage.workingSetBytes;
  return [
    family(
      'counter',
      'container_cpu_usage_seconds_total',
      'CPU time of the container, in core-seconds.',
      ofContainers(cpu),
    ),
    family(
      'gauge',
      'container_memory_working_set_bytes',
      'Working set of the container, in bytes.',
      ofContainers(memory),
    ),
    family(
      'gauge',
      'container_start_time_seconds',
      'When the container started, in seconds since the epoch.',
      ofContainers(startTime).map(({ labels, value }) => ({ labels, value })),
    ),
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
    family(
      'counter',
      'pod_cpu_usage_seconds_total',
      'CPU time of the running containers of the Pod, in core-seconds.',
      ofPods(cpu),
    ),
    family(
      'gauge',
      'pod_memory_working_set_bytes',
      'Working set of the running containers of the Pod, in bytes.',
      ofPods(memory),
    ),
    family('gauge', 'resource_scrape_error', '1 if there was an error while reading, 0 otherwise.', single(0)),
  ];
}

/** `interfaces`: in the order of the Pods; undefined for a Pod without a network of its own. */
export function cadvisorMetrics(
  pods: readonly UsedPod[],
  interfaces: readonly (readonly InterfaceUsage[] | undefined)[],
  machine: { cores: number; memoryBytes: number },
): MetricFamily[] {
  const ofContainers = (figure: Figure, more: Record<string, string> = {}): MetricSample[] =>
    pods.flatMap((pod) =>
      pod.containers.flatMap((container) => {
        const value = figure(container);
        const { id, at } = container.usage;
        const labels = { container: container.name, ...more, id, image: container.image, name: id, ...podLabels(pod) };
        return value === undefined ? [] : [{ labels, value, at }];
      }),
    );
  const ofInterfaces = (figure: (one: InterfaceUsage) => number): MetricSample[] =>
    pods.flatMap((pod, index) =>
      (interfaces[index] ?? []).map((one) => ({
        labels: { interface: one.name, id: pod.sandboxId ?? '', ...podLabels(pod) },
        value: figure(one),
      })),
    );
  const counter = (name: string, help: string, samples: MetricSample[]): MetricFamily =>
    family('counter', name, help, samples);
  const gauge = (name: string, help: string, samples: MetricSample[]): MetricFamily =>
    family('gauge', name, help, samples);
  return [
    counter(
      'container_cpu_usage_seconds_total',
      'CPU time of the container, in core-seconds.',
      ofContainers(({ usage }) => seconds(usage.cpuNanoSeconds), { cpu: 'total' }),
    ),
    gauge(
      'container_memory_working_set_bytes',
      'Working set of the container, in bytes.',
      ofContainers(({ usage }) => usage.workingSetBytes),
    ),
    gauge(
      'container_memory_usage_bytes',
      'Memory of the container with all pages of files, in bytes.',
      ofContainers(({ usage }) => usage.usageBytes),
    ),
    gauge(
      'container_memory_rss',
      'Memory of the container that belongs to no file, in bytes.',
      ofContainers(({ usage }) => usage.rssBytes),
    ),
    gauge(
      'container_fs_usage_bytes',
      'Bytes that the container has written outside of its volumes.',
      ofContainers(({ usage }) => usage.rootFs?.usedBytes),
    ),
    gauge(
      'container_start_time_seconds',
      'When the container started, in seconds since the epoch.',
      ofContainers(startTime),
    ),
    gauge(
      'container_last_seen',
      'When the container was last measured, in seconds since the epoch.',
      ofContainers(({ usage }) => usage.at / 1000),
    ),
    counter(
      'container_network_receive_bytes_total',
      'Bytes that the Pod has received.',
      ofInterfaces(({ rxBytes }) => rxBytes),
    ),
    counter(
      'container_network_receive_errors_total',
      'Errors while the Pod received.',
      ofInterfaces(({ rxErrors }) => rxErrors),
    ),
    counter(
      'container_network_transmit_bytes_total',
      'Bytes that the Pod has sent.',
      ofInterfaces(({ txBytes }) => txBytes),
    ),
    counter(
      'container_network_transmit_errors_total',
      'Errors while the Pod sent.',
      ofInterfaces(({ txErrors }) => txErrors),
    ),
    gauge('machine_cpu_cores', 'Cores of the machine.', single(machine.cores)),
    gauge('machine_memory_bytes', 'Memory of the machine, in bytes.', single(machine.memoryBytes)),
  ];
}

/** Metrics of the volumes of claims, each once however many Pods use it. */
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
    figure('available_bytes', 'Bytes that are free in the volume.', (disk) => disk.availableBytes),
    figure('capacity_bytes', 'Bytes that the volume has.', (disk) => disk.capacityBytes),
    figure('inodes', 'Inodes that the volume has.', (disk) => disk.inodes),
    figure('inodes_free', 'Inodes that are free in the volume.', (disk) => disk.inodesFree),
    figure('inodes_used', 'Inodes that are used in the volume.', (disk) => disk.inodes - disk.inodesFree),
    figure('used_bytes', 'Bytes that are used in the volume.', (disk) => disk.usedBytes),
  ];
}
