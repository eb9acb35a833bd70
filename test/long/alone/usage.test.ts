import { beforeAll, expect, test } from 'vitest';
import { parseQuantity, quantityMilli, quantityValue } from '../../../src/machinery/quantity.ts';
import { lifepod, useOwnEngine } from '../../support/own-engine.ts';
import { metricOf, readMetrics } from '../../support/prometheus.ts';

const MEBIBYTE = 2 ** 20;
/** An upper limit for the CPU usage of a container that sleeps. */
const IDLE_MILLICORES = 50;
/** Uses all the time of two cores that other processes leave. */
const BURN = 'while :; do :; done & while :; do :; done';

useOwnEngine();
beforeAll(async () => {
  const container = (name: string, script: string, more: object = {}) => ({
    name,
    image: 'busybox:1.28',
    command: ['sh', '-c', script],
    ...more,
  });
  const write = (path: string, mebibytes: number): string => `dd if=/dev/zero of=${path} bs=1M count=${mebibytes}`;
  const pod = (name: string, spec: object) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: name } },
    spec: { terminationGracePeriodSeconds: 0, ...spec },
  });
  const items = [
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'claim' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    },
    pod('burner', {
      volumes: [
        { name: 'disk', emptyDir: {} },
        { name: 'kept', persistentVolumeClaim: { claimName: 'claim' } },
      ],
      containers: [
        container('idle', `${write('/disk/file', 1)}; ${write('/kept/file', 40)}; touch /disk/ready; exec sleep 1000`, {
          volumeMounts: [
            { name: 'disk', mountPath: '/disk' },
            { name: 'kept', mountPath: '/kept' },
          ],
          resources: { requests: { cpu: '200m' } },
          // A startup probe ends with its first success. A readiness probe's process would count in the number of processes.
          startupProbe: { exec: { command: ['cat', '/disk/ready'] }, periodSeconds: 1, failureThreshold: 60 },
        }),
        container('burn', BURN, { resources: { requests: { cpu: '200m' } } }),
      ],
    }),
    pod('holder', {
      volumes: [{ name: 'memory', emptyDir: { medium: 'Memory' } }],
      containers: [
        container('hold', 'dd if=/dev/zero of=/memory/file bs=1M count=50 && touch /memory/held && exec sleep 1000', {
          volumeMounts: [{ name: 'memory', mountPath: '/memory' }],
          resources: { requests: { cpu: '500m' }, limits: { memory: '200Mi' } },
          readinessProbe: { exec: { command: ['cat', '/memory/held'] }, periodSeconds: 1 },
        }),
      ],
    }),
  ];
  await lifepod.apply({ apiVersion: 'v1', kind: 'List', items });
  await lifepod.kubectlOk('wait', '--for=condition=Ready', 'pod', '--all', '--timeout=60s');
});

/** By the name in the first column: the other cells of the row. */
async function top(...args: string[]): Promise<Map<string, string[]>> {
  const text = await lifepod.kubectlOk('top', ...args, '--no-headers');
  return new Map(
    text
      .trimEnd()
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .map(([name = '', ...cells]) => [name, cells]),
  );
}

const proxied = (path: string): Promise<string> =>
  lifepod.kubectlOk('get', '--raw', `/api/v1/nodes/node-1/proxy/${path}`);

/** In seconds. */
const burnt = async () =>
  metricOf(readMetrics(await proxied('metrics/resource')), 'container_cpu_usage_seconds_total', { container: 'burn' });

const milli = (text: string | undefined): number => Number(quantityMilli(parseQuantity(text ?? '') ?? fail(text)));
const bytes = (text: string | undefined): number => Number(quantityValue(parseQuantity(text ?? '') ?? fail(text)));
const fail = (text: string | undefined): never => {
  throw new Error(`${text} is not a quantity`);
};

test('kubectl top shows the CPU usage of a busy container and the memory usage of another container', async () => {
  const before = await burnt();
  const pods = await top('pods');
  const after = await burnt();
  expect([...pods.keys()]).toEqual(['burner', 'holder']);
  // The average CPU usage between both readings, in thousandths of a core. It depends on the load of the machine.
  const counted = ((after.value - before.value) * 1e6) / ((after.at ?? 0) - (before.at ?? 0));
  expect(milli(pods.get('burner')?.[0])).toBeGreaterThan(counted / 2);
  expect(milli(pods.get('burner')?.[0])).toBeLessThan(counted * 2);
  expect(counted).toBeGreaterThan(IDLE_MILLICORES * 2);
  expect(milli(pods.get('holder')?.[0])).toBeLessThan(IDLE_MILLICORES);
  expect(bytes(pods.get('holder')?.[1])).toBeGreaterThanOrEqual(50 * MEBIBYTE);
  expect(bytes(pods.get('holder')?.[1])).toBeLessThan(60 * MEBIBYTE);
  expect(bytes(pods.get('burner')?.[1])).toBeLessThan(10 * MEBIBYTE);
});

test('kubectl top pods supports --containers, --sort-by, -l, -A and names, and reports a missing Pod', async () => {
  const headers = await lifepod.kubectlOk('top', 'pods', '--containers');
  expect(
    headers
      .split('\n')[0]
      ?.trim()
      .split(/\s{2,}/),
  ).toEqual(['POD', 'NAME', 'CPU(cores)', 'MEMORY(bytes)']);
  expect(
    headers
      .split('\n')
      .slice(1, 4)
      .map((line) => line.split(/\s+/).slice(0, 2).join('/')),
  ).toEqual(['burner/burn', 'burner/idle', 'holder/hold']);
  const order = async (by: string): Promise<string[]> => [...(await top('pods', `--sort-by=${by}`)).keys()];
  expect(await order('cpu')).toEqual(['burner', 'holder']);
  expect(await order('memory')).toEqual(['holder', 'burner']);
  expect([...(await top('pods', '-l', 'app=holder')).keys()]).toEqual(['holder']);
  expect(await lifepod.kubectlOk('top', 'pods', '-A')).toMatch(/NAMESPACE.*\ndefault +burner .*\ndefault +holder /);
  expect([...(await top('pod', 'holder')).keys()]).toEqual(['holder']);
  expect(await lifepod.kubectl('top', 'pod', 'nobody')).toMatchObject({
    code: 1,
    stderr: 'Error from server (NotFound): pods.metrics.k8s.io "nobody" not found\n',
  });
});

test('kubectl top nodes shows the CPU and memory usage of the node', async () => {
  const [cpu, cpuPart, memory, memoryPart] = (await top('nodes')).get('node-1') ?? [];
  expect(milli(cpu)).toBeGreaterThan(IDLE_MILLICORES * 2);
  expect(bytes(memory)).toBeGreaterThan(50 * MEBIBYTE);
  for (const part of [cpuPart, memoryPart]) expect(part).toMatch(/^\d+%$/);
});

test('kubectl explain and kubectl get can read PodMetrics, and the name pods still means the core kind', async () => {
  expect(await lifepod.kubectlOk('explain', 'podmetrics.containers.usage')).toContain('metrics.k8s.io');
  const one = JSON.parse(await lifepod.kubectlOk('get', 'podmetrics', 'holder', '-o', 'json'));
  expect(one).toMatchObject({ kind: 'PodMetrics', metadata: { labels: { app: 'holder' } } });
  // `pods` and `nodes` still mean the core kinds, although metrics.k8s.io has resources of these names, too.
  expect(await lifepod.kubectlOk('get', 'pods,nodes', '-o', 'name')).toBe('pod/burner\npod/holder\nnode/node-1\n');
});

test('stats/summary shows the usage of the node, Pods, containers and volumes', async () => {
  const { node, pods } = JSON.parse(await proxied('stats/summary'));
  expect(node).toMatchObject({ nodeName: 'node-1', cpu: { usageNanoCores: expect.any(Number) } });
  expect(node.memory.workingSetBytes).toBeGreaterThan(50 * MEBIBYTE);
  expect(node.fs.usedBytes).toBeLessThan(node.fs.capacityBytes);
  expect(node.runtime.imageFs.capacityBytes).toBeGreaterThan(0);
  expect(node.network.interfaces.map(({ name }: { name: string }) => name)).not.toContain('lo');
  const [burner, holder] = pods.sort((a: { podRef: { name: string } }, b: { podRef: { name: string } }) =>
    a.podRef.name < b.podRef.name ? -1 : 1,
  );
  expect(burner.containers.map(({ name }: { name: string }) => name)).toEqual(['idle', 'burn']);
  expect(burner.containers[1].cpu.usageNanoCores).toBeGreaterThan(IDLE_MILLICORES * 1e6);
  expect(burner.cpu.usageNanoCores).toBeGreaterThanOrEqual(burner.containers[1].cpu.usageNanoCores);
  const [hold] = holder.containers;
  const used = hold.memory.workingSetBytes;
  expect(used).toBeGreaterThanOrEqual(50 * MEBIBYTE);
  expect(hold.memory.availableBytes).toBe(200 * MEBIBYTE - used);
  // The log is not empty, because dd writes its report to stderr.
  expect(hold.logs.usedBytes).toBeGreaterThan(0);
  expect(holder.network.name).toBe('eth0');
  const memory = holder.volume.find(({ name }: { name: string }) => name === 'memory');
  expect(memory.usedBytes).toBeGreaterThanOrEqual(50 * MEBIBYTE);
  expect(memory.usedBytes).toBeLessThan(60 * MEBIBYTE);
  const written = burner.volume.find(({ name }: { name: string }) => name === 'disk').usedBytes;
  expect(written).toBeGreaterThanOrEqual(MEBIBYTE);
  expect(burner['ephemeral-storage'].usedBytes).toBeGreaterThanOrEqual(written);
  // A claim's volume is kept after the Pod. It has the capacity of the disk, and does not count as ephemeral storage of the Pod.
  const kept = burner.volume.find(({ name }: { name: string }) => name === 'kept');
  expect(kept).toMatchObject({ pvcRef: { name: 'claim', namespace: 'default' }, capacityBytes: node.fs.capacityBytes });
  expect(burner['ephemeral-storage'].usedBytes).toBeLessThan(40 * MEBIBYTE);
  // The container burn has two busy processes, and idle has one that sleeps.
  expect(burner.process_stats.process_count).toBe(3);
  expect(holder['ephemeral-storage'].usedBytes).toBeLessThan(MEBIBYTE);
  expect(holder['ephemeral-storage'].usedBytes).toBeGreaterThanOrEqual(hold.logs.usedBytes);
});

test('metrics/resource and metrics/cadvisor provide the usage of containers, Pods and the node', async () => {
  const resource = readMetrics(await proxied('metrics/resource'));
  const { value: before } = metricOf(resource, 'container_cpu_usage_seconds_total', { container: 'burn' });
  expect(before).toBeGreaterThan(0.5);
  expect(metricOf(resource, 'pod_memory_working_set_bytes', { pod: 'holder' }).value).toBeGreaterThan(50 * MEBIBYTE);
  expect(metricOf(resource, 'node_cpu_usage_seconds_total').value).toBeGreaterThan(before);
  const cadvisor = readMetrics(await proxied('metrics/cadvisor'));
  expect(metricOf(cadvisor, 'container_cpu_usage_seconds_total', { container: 'burn' }).value).toBeGreaterThan(before);
  expect(metricOf(cadvisor, 'container_memory_working_set_bytes', { container: 'hold' }).value).toBeGreaterThan(
    50 * MEBIBYTE,
  );
  expect(metricOf(cadvisor, 'container_network_transmit_bytes_total', { pod: 'holder' }).value).toBeGreaterThan(0);
});

test('the API server and the node each serve their metrics', async () => {
  const families = readMetrics(await lifepod.kubectlOk('get', '--raw', '/metrics'));
  const value = (name: string, labels?: Record<string, string>): number => metricOf(families, name, labels).value;
  const listed = { verb: 'LIST', group: 'metrics.k8s.io', resource: 'pods', scope: 'namespace' };
  expect(value('apiserver_request_total', { ...listed, code: '200' })).toBeGreaterThan(1);
  const slowest = { ...listed, le: '+Inf' };
  expect(value('apiserver_request_duration_seconds_bucket', slowest)).toBeGreaterThan(1);
  expect(value('lifepod_pods', { phase: 'Running' })).toBe(2);
  expect(value('lifepod_pod_start_duration_seconds_count')).toBe(2);
  expect(value('lifepod_pod_start_duration_seconds_sum')).toBeLessThan(120);
  expect(value('kubelet_runtime_operations_total', { operation_type: 'run_podsandbox' })).toBeGreaterThanOrEqual(2);
  expect(value('kubelet_runtime_operations_total', { operation_type: 'start_container' })).toBeGreaterThanOrEqual(3);
  expect(value('lifepod_store_operation_duration_seconds_count', { operation: 'txn' })).toBeGreaterThan(10);
  expect(value('apiserver_storage_size_bytes')).toBeGreaterThan(1000);
  expect(value('apiserver_resource_objects', { group: '', resource: 'pods' })).toBe(2);
  expect(value('workqueue_depth', { name: 'scheduler' })).toBe(0);
  expect(value('workqueue_adds_total', { name: 'scheduler' })).toBeGreaterThanOrEqual(2);
  expect(value('process_resident_memory_bytes')).toBeGreaterThan(50 * MEBIBYTE);
  expect(families.get('nodejs_gc_duration_seconds')?.type).toBe('histogram');
  const node = readMetrics(await proxied('metrics'));
  expect(metricOf(node, 'lifepod_pods', { phase: 'Running' }).value).toBe(2);
  expect(node.has('apiserver_request_total')).toBe(false);
  const claimed = { namespace: 'default', persistentvolumeclaim: 'claim' };
  expect(metricOf(node, 'kubelet_volume_stats_capacity_bytes', claimed).value).toBeGreaterThan(MEBIBYTE);
  expect(metricOf(node, 'kubelet_volume_stats_used_bytes', claimed).value).toBeGreaterThan(40 * MEBIBYTE);
});

test('kubelet_runtime_operations_errors_total counts image pulls that fail', async () => {
  const failures = async (): Promise<number> =>
    metricOf(
      readMetrics(await lifepod.kubectlOk('get', '--raw', '/metrics')),
      'kubelet_runtime_operations_errors_total',
      { operation_type: 'pull_image' },
    ).value;
  const spec = { containers: [{ name: 'app', image: '127.0.0.1:1/nothing:1' }] };
  await lifepod.apply({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'unpulled' }, spec });
  await lifepod.until(['get', 'pods', 'unpulled', '-w', '--no-headers'], (line) => /ErrImagePull|BackOff/.test(line));
  expect(await failures()).toBeGreaterThanOrEqual(1);
  await lifepod.kubectlOk('delete', 'pod', 'unpulled', '--now');
});

test('the proxy of the Node serves the Pods and the health of the node, and fails for other paths', async () => {
  const { kind, items } = JSON.parse(await proxied('pods'));
  expect(kind).toBe('PodList');
  expect(items.map(({ metadata }: { metadata: { name: string } }) => metadata.name).sort()).toEqual([
    'burner',
    'holder',
  ]);
  expect(await proxied('healthz')).toBe('ok');
  expect((await lifepod.kubectl('get', '--raw', '/api/v1/nodes/node-1/proxy/nothing')).code).toBe(1);
});
