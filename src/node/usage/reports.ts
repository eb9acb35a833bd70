/**
 * The node's reports: the usage behind `kubectl top`, and the kubelet's documents, which the proxy subresource of the Node serves.
 *
 * Boundary: only reads (the runtime, /proc, the sizes of files). The API server authorizes the requests.
 * Invariant: nothing is measured unless a report is requested (sampler.ts).
 */
import { availableParallelism, totalmem } from 'node:os';
import { join } from 'node:path';
import { encodeOnce } from '../../machinery/encode.ts';
import { parseQuantity, quantityValue } from '../../machinery/quantity.ts';
import { serviceUnavailable } from '../../machinery/status.ts';
import { METRICS_CONTENT_TYPE, type Metrics, metricsText } from '../../platform/metrics.ts';
import type { Timers } from '../../platform/platform.ts';
import type { NodeDocument, NodeReports, NodeUsage } from '../../ports/node-reports.ts';
import type { ContainerRuntime, RuntimeUsage } from '../../runtime/runtime.ts';
import { containersByName } from '../container/by-name.ts';
import { etcHostsFile, terminationMessagesFolder } from '../container/container-config.ts';
import { podMemoryFolder } from '../volumes/pod-memory.ts';
import { type DiskUse, folderUsage } from './folder-usage.ts';
import { readDiskUsage, readMachineInterfaces, readMachineUsage, readProcessLimits } from './machine-usage.ts';
import { createPodNetworks, logSize, type NodePod, type UsedContainer, type UsedPod, usedPods } from './node-pods.ts';
import { countProcesses } from './processes.ts';
import { cadvisorMetrics, resourceMetrics, volumeMetrics } from './resource-metrics.ts';
import { containerRate, createSampler, machineRate, type Sample, type SamplePair } from './sampler.ts';
import { type SummaryContainer, summary } from './summary.ts';
import { createVolumeReader } from './volume-usage.ts';

export interface NodeReportsOptions {
  nodeName: string;
  runtime: RuntimeUsage & Pick<ContainerRuntime, 'imageFolder'>;
  pods(): NodePod[];
  /** The metrics of the node. */
  metrics: Metrics;
  /** Contains the folders of the Pods; on the disk of their volumes and logs. */
  dataDir: string;
  timers: Timers;
  signal: AbortSignal;
}

export function createNodeReports(options: NodeReportsOptions): NodeReports {
  const { nodeName, runtime, timers, metrics } = options;
  const look = async (signal: AbortSignal): Promise<Sample> => {
    const [containers, machine] = await Promise.all([runtime.containerUsage(signal), readMachineUsage(timers.now)]);
    return { at: timers.now(), machine, containers };
  };
  const sampler = createSampler({ look, timers, signal: options.signal });
  const networks = createPodNetworks(runtime);
  const podsFolder = join(options.dataDir, 'pods');
  const volumes = createVolumeReader(
    (uid) => ({ disk: join(podsFolder, uid), memory: join(podMemoryFolder(options.dataDir), uid) }),
    timers,
    options.signal,
  );
  const used = (sample: Sample): UsedPod[] => {
    const pods = usedPods(options.pods(), sample.containers);
    networks.keep(pods);
    return pods;
  };

  const text = (content: string): NodeDocument => ({ contentType: METRICS_CONTENT_TYPE, texts: [content] });
  const json = (body: unknown): NodeDocument => ({
    contentType: 'application/json',
    texts: [`${JSON.stringify(body)}\n`],
  });
  const documents: Readonly<Record<string, (signal: AbortSignal) => Promise<NodeDocument>>> = {
    '/healthz': async () => ({ contentType: 'text/plain; charset=utf-8', texts: ['ok'] }),
    '/pods': async () => ({ contentType: 'application/json', texts: podListTexts(options.pods()) }),
    '/metrics': async () => {
      const claims = await volumes.claims(options.pods().map(({ pod }) => pod));
      return text(metricsText([...(await metrics.families()), ...volumeMetrics(claims)]));
    },
    '/metrics/resource': async (signal) => {
      const sample = await look(signal);
      return text(metricsText(resourceMetrics(used(sample), sample)));
    },
    '/metrics/cadvisor': async (signal) => {
      const pods = used(await look(signal));
      const interfaces = await Promise.all(pods.map((pod) => networks.interfaces(pod, signal)));
      const machine = { cores: availableParallelism(), memoryBytes: totalmem() };
      return text(metricsText(cadvisorMetrics(pods, interfaces, machine)));
    },
    '/stats/summary': async (signal) => json(await readSummary(await sampler.pair(), signal)),
  };

  async function readSummary(pair: SamplePair, signal: AbortSignal) {
    const processesOf = await countProcesses(pair.last.containers.map(({ id }) => id));
    const readPod = async (pod: UsedPod) => ({
      used: pod,
      processes: pod.containers.reduce((sum, { usage }) => sum + (processesOf.get(usage.id) ?? 0), 0),
      interfaces: await networks.interfaces(pod, signal),
      containers: await Promise.all(pod.containers.map((each) => readContainer(pair, pod, each))),
      volumes: await volumes.read(pod.pod),
      files: await ownFiles(join(podsFolder, pod.pod.metadata.uid ?? ''), signal),
    });
    const imageFolder = await runtime.imageFolder?.(signal);
    const [disk, runtimeDisk, interfaces, processes, pods] = await Promise.all([
      readDiskUsage(options.dataDir),
      readDiskUsage(imageFolder ?? options.dataDir),
      readMachineInterfaces(),
      readProcessLimits(),
      Promise.all(used(pair.last).map(readPod)),
    ]);
    return summary({
      node: nodeName,
      now: timers.now(),
      machine: pair.last.machine,
      cpuNanoCores: machineRate(pair),
      interfaces,
      disk,
      runtimeDisk,
      processes,
      pods,
    });
  }

  return {
    async usage() {
      const pair = await sampler.pair();
      return nodeUsage(nodeName, pair, used(pair.last));
    },
    async document(node, path, signal) {
      if (node !== nodeName) throw serviceUnavailable(`no connection to the node ${JSON.stringify(node)}`);
      return Object.hasOwn(documents, path) ? documents[path]?.(signal) : undefined;
    },
  };
}

export function nodeUsage(node: string, pair: SamplePair, pods: readonly UsedPod[]): NodeUsage {
  const { first, last } = pair;
  return {
    node,
    at: last.at,
    windowMillis: last.at - first.at,
    cpuNanoCores: machineRate(pair),
    memoryWorkingSetBytes: last.machine.memory.workingSetBytes,
    pods: pods.map(({ pod, containers }) => ({
      namespace: pod.metadata.namespace ?? '',
      name: pod.metadata.name,
      containers: containers.flatMap(({ name, startedAt, usage }) => {
        const cpuNanoCores = containerRate(pair, usage, startedAt);
        return cpuNanoCores === undefined ? [] : [{ name, cpuNanoCores, memoryWorkingSetBytes: usage.workingSetBytes }];
      }),
    })),
  };
}

async function readContainer(pair: SamplePair, { pod, logDirectory }: UsedPod, container: UsedContainer) {
  const { name, startedAt, usage } = container;
  const spec = containersByName(pod).get(name);
  const limit = parseQuantity(spec?.resources?.limits?.['memory'] ?? '');
  return {
    ...container,
    cpuNanoCores: containerRate(pair, usage, startedAt),
    logs: await logSize(logDirectory, name),
    memoryLimitBytes: limit === undefined ? undefined : Number(quantityValue(limit)),
  } satisfies SummaryContainer;
}

/** The disk usage of the Pod's own files that its containers can write: /etc/hosts and termination messages. */
async function ownFiles(podFolder: string, signal: AbortSignal): Promise<DiskUse> {
  const hosts = await folderUsage(etcHostsFile(podFolder), signal);
  const messages = await folderUsage(terminationMessagesFolder(podFolder), signal);
  return { bytes: hosts.bytes + messages.bytes, inodes: hosts.inodes + messages.inodes };
}

function* podListTexts(pods: readonly NodePod[]): Generator<string> {
  yield '{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[';
  for (const [index, { pod }] of pods.entries()) {
    if (index > 0) yield ',';
    yield encodeOnce(pod);
  }
  yield ']}\n';
}
