import { describe, expect, test } from 'vitest';
import { podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { Pod } from '../../api/generated/types.ts';
import { metricsText } from '../../platform/metrics.ts';
import type { ContainerUsage } from '../../runtime/runtime.ts';
import type { DiskUsage, InterfaceUsage } from './machine-usage.ts';
import type { UsedContainer, UsedPod } from './node-pods.ts';
import { cadvisorMetrics, resourceMetrics, volumeMetrics } from './resource-metrics.ts';
import type { Sample } from './sampler.ts';

const podNamed = (name: string, namespace?: string): Pod => ({ ...podOf(), metadata: { name, namespace, uid: name } });
const container = (name: string, usage: Partial<ContainerUsage>, more: Partial<UsedContainer> = {}): UsedContainer => ({
  name,
  startedAt: 5500,
  image: `${name}-image`,
  usage: { podUid: 'u', id: `${name}-id`, name, attempt: 0, at: 0, cpuNanoSeconds: 0, workingSetBytes: 0, ...usage },
  ...more,
});
const used = (pod: Pod, containers: UsedContainer[], sandboxId?: string): UsedPod => ({
  pod,
  logDirectory: '',
  containers,
  sandboxId,
});

/** Two Pods: one with a container that reports all values and a container that reports as few as possible, and one without containers. */
const PODS: readonly UsedPod[] = [
  used(
    podNamed('web', 'shop'),
    [
      container('app', {
        at: 7250,
        cpuNanoSeconds: 1.5e9,
        workingSetBytes: 100,
        usageBytes: 110,
        rssBytes: 90,
        rootFs: { usedBytes: 80, inodesUsed: 3 },
      }),
      container('side', { at: 7500, cpuNanoSeconds: 25e7, workingSetBytes: 20 }, { startedAt: undefined }),
    ],
    'sandbox',
  ),
  used(podNamed('bare'), []),
];
const MACHINE: Sample['machine'] = {
  at: 8000,
  cpuNanoSeconds: 64e9,
  bootedAt: 0,
  memory: { usageBytes: 4, workingSetBytes: 3, availableBytes: 2, rssBytes: 1 },
};

const samplesIn = (text: string): string[] => text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
const typesIn = (text: string): string[] =>
  text.split('\n').flatMap((line) => (line.startsWith('# TYPE ') ? [line.slice('# TYPE '.length)] : []));

describe('/metrics/resource', () => {
  const text = metricsText(resourceMetrics(PODS, { at: 1, machine: MACHINE, containers: [] }));

  test('/metrics/resource has the usage of the containers, the node and the Pods, with the times of the measurements', () => {
    expect(samplesIn(text)).toEqual([
      'container_cpu_usage_seconds_total{container="app",namespace="shop",pod="web"} 1.5 7250',
      'container_cpu_usage_seconds_total{container="side",namespace="shop",pod="web"} 0.25 7500',
      'container_memory_working_set_bytes{container="app",namespace="shop",pod="web"} 100 7250',
      'container_memory_working_set_bytes{container="side",namespace="shop",pod="web"} 20 7500',
      // A start time is not a measurement, so the sample has no time of measurement.
      'container_start_time_seconds{container="app",namespace="shop",pod="web"} 5.5',
      'node_cpu_usage_seconds_total 64 8000',
      'node_memory_working_set_bytes 3 8000',
      'pod_cpu_usage_seconds_total{namespace="shop",pod="web"} 1.75 7250',
      'pod_cpu_usage_seconds_total{namespace="",pod="bare"} 0 0',
      'pod_memory_working_set_bytes{namespace="shop",pod="web"} 120 7250',
      'pod_memory_working_set_bytes{namespace="",pod="bare"} 0 0',
      'resource_scrape_error 0',
    ]);
  });

  test('/metrics/resource reports CPU time as counters and all other values as gauges', () => {
    expect(typesIn(text)).toEqual([
      'container_cpu_usage_seconds_total counter',
      'container_memory_working_set_bytes gauge',
      'container_start_time_seconds gauge',
      'node_cpu_usage_seconds_total counter',
      'node_memory_working_set_bytes gauge',
      'pod_cpu_usage_seconds_total counter',
      'pod_memory_working_set_bytes gauge',
      'resource_scrape_error gauge',
    ]);
  });

  test('/metrics/resource of a node without Pods has only the usage of the node', () => {
    expect(
      samplesIn(metricsText(resourceMetrics([], { at: 1, machine: MACHINE, containers: [] }))).map(
        (line) => line.split(' ')[0],
      ),
    ).toEqual(['node_cpu_usage_seconds_total', 'node_memory_working_set_bytes', 'resource_scrape_error']);
  });
});

describe('/metrics/cadvisor', () => {
  const interfaceNamed = (name: string): InterfaceUsage => ({ name, rxBytes: 1, rxErrors: 2, txBytes: 3, txErrors: 4 });
  const machine = { cores: 8, memoryBytes: 1024 };

  test('/metrics/cadvisor has the usage of the containers, as far as the runtime reports it, and the size of the machine', () => {
    const labels = (name: string, cpu = '') =>
      `{container="${name}",${cpu}id="${name}-id",image="${name}-image",name="${name}-id",namespace="shop",pod="web"}`;
    const [app, side] = [labels('app'), labels('side')];
    const text = metricsText(cadvisorMetrics(PODS, [undefined, undefined], machine));
    expect(samplesIn(text)).toEqual([
      `container_cpu_usage_seconds_total${labels('app', 'cpu="total",')} 1.5 7250`,
      `container_cpu_usage_seconds_total${labels('side', 'cpu="total",')} 0.25 7500`,
      `container_memory_working_set_bytes${app} 100 7250`,
      `container_memory_working_set_bytes${side} 20 7500`,
      `container_memory_usage_bytes${app} 110 7250`,
      `container_memory_rss${app} 90 7250`,
      `container_fs_usage_bytes${app} 80 7250`,
      `container_start_time_seconds${app} 5.5 7250`,
      `container_last_seen${app} 7.25 7250`,
      `container_last_seen${side} 7.5 7500`,
      'machine_cpu_cores 8',
      'machine_memory_bytes 1024',
    ]);
    expect(typesIn(text).filter((type) => type.endsWith('counter'))).toEqual([
      'container_cpu_usage_seconds_total counter',
    ]);
  });

  test('/metrics/cadvisor has the traffic of each interface of a Pod, and none of a Pod whose network is unknown', () => {
    const pods = [
      used(podNamed('unknown', 'shop'), [], 'other'),
      used(podNamed('web', 'shop'), [], 'sandbox'),
      used(podNamed('bare'), []),
    ];
    const interfaces = [undefined, [interfaceNamed('eth0'), interfaceNamed('eth1')], [interfaceNamed('eth0')]];
    const text = metricsText(cadvisorMetrics(pods, interfaces, machine));
    const series = [
      'interface="eth0",id="sandbox",namespace="shop",pod="web"',
      'interface="eth1",id="sandbox",namespace="shop",pod="web"',
      'interface="eth0",id="",namespace="",pod="bare"',
    ];
    const metrics = ['receive_bytes', 'receive_errors', 'transmit_bytes', 'transmit_errors'].map(
      (name) => `container_network_${name}_total`,
    );
    expect(samplesIn(text).filter((line) => line.startsWith('container_network'))).toEqual(
      metrics.flatMap((name, index) => series.map((labels) => `${name}{${labels}} ${index + 1}`)),
    );
    expect(typesIn(text).slice(0, 4)).toEqual(metrics.map((name) => `${name} counter`));
  });

  test('/metrics/cadvisor has no traffic of a Pod that is not in the list of interfaces', () => {
    const text = metricsText(cadvisorMetrics(PODS, [], machine));
    expect(samplesIn(text).filter((line) => line.startsWith('container_network'))).toEqual([]);
  });
});

describe('volumeMetrics', () => {
  const DISK: DiskUsage = { capacityBytes: 1000, usedBytes: 600, availableBytes: 300, inodes: 50, inodesFree: 20 };
  const claimed = (pod: Pod, claim: string, own?: DiskUsage) => ({
    pod,
    usage: { name: 'data', usedBytes: 1, inodesUsed: 1, claim, ...(own && { own }) },
  });

  test('a claim has the figures of its file system, all as gauges', () => {
    const text = metricsText(volumeMetrics([claimed(podNamed('web', 'shop'), 'data', DISK)]));
    const labels = '{namespace="shop",persistentvolumeclaim="data"}';
    expect(samplesIn(text)).toEqual([
      `kubelet_volume_stats_available_bytes${labels} 300`,
      `kubelet_volume_stats_capacity_bytes${labels} 1000`,
      `kubelet_volume_stats_inodes${labels} 50`,
      `kubelet_volume_stats_inodes_free${labels} 20`,
      `kubelet_volume_stats_inodes_used${labels} 30`,
      `kubelet_volume_stats_used_bytes${labels} 600`,
    ]);
    expect(typesIn(text).every((type) => type.endsWith(' gauge'))).toBe(true);
  });

  test('a claim of several Pods is reported once, and claims of the same name in other namespaces are reported separately', () => {
    const claims = [
      claimed(podNamed('a', 'shop'), 'data', DISK),
      claimed(podNamed('b', 'shop'), 'data', { ...DISK, usedBytes: 601 }),
      claimed(podNamed('a', 'bank'), 'data', DISK),
    ];
    expect(samplesIn(metricsText(volumeMetrics(claims))).filter((line) => line.includes('_used_bytes'))).toEqual([
      'kubelet_volume_stats_used_bytes{namespace="shop",persistentvolumeclaim="data"} 601',
      'kubelet_volume_stats_used_bytes{namespace="bank",persistentvolumeclaim="data"} 600',
    ]);
  });

  test('a claim whose file system is unknown is not reported', () => {
    expect(metricsText(volumeMetrics([claimed(podNamed('web', 'shop'), 'data')]))).toBe('');
  });
});
