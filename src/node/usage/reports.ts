/**
 * Boundary: the API server authorizes the requests.
 * Invariant: nothing is measured unless a report is requested (sampler.ts).
 */
import { availableParallelism, totalmem } from 'node:os';
import { join } from 'node:path';
import { encodeOnce } from '../../machinery/encode.ts';
import { serviceUnavailable } from '../../machinery/status.ts';
import { METRICS_CONTENT_TYPE, type MetricFamily, type Metrics, metricsText } from '../../platform/metrics.ts';
import type { Timers } from '../../platform/platform.ts';
import type { NodeDocument, NodeReports, NodeUsage } from '../../ports/node-reports.ts';
import type { ContainerRuntime, RuntimeUsage } from '../../runtime/runtime.ts';
import { podMemoryFolder } from '../volumes/pod-memory.ts';
import { readMachineUsage } from './machine-usage.ts';
import { createPodNetworks, type NodePod, type PodNetworks, type UsedPod, usedPods } from './node-pods.ts';
import { cadvisorMetrics, resourceMetrics, volumeMetrics } from './resource-metrics.ts';
import { containerRate, createSampler, machineRate, type Sample, type SamplePair, type Sampler } from './sampler.ts';
import { summary } from './summary.ts';
import { readSummaryFacts } from './summary-reading.ts';
import { createVolumeReader, type VolumeReader } from './volume-usage.ts';

export interface NodeReportsOptions {
  nodeName: string;
  runtime: RuntimeUsage & Pick<ContainerRuntime, 'imageFolder'>;
  pods(): NodePod[];
  /** A KubeletConfiguration without kind, for /configz. */
  configuration: Readonly<Record<string, unknown>>;
  /** /metrics reports these metrics and those of the claims' volumes. */
  metrics: Metrics;
  /**
   * Contains the Pods' folders and pods-memory, the tmpfs of all Pods. The disk of this folder is reported as the disk of logs, and of
   * volumes without a file system of their own.
   */
  dataDir: string;
  timers: Timers;
  signal: AbortSignal;
}

export function createNodeReports(options: NodeReportsOptions): NodeReports {
  const { nodeName, runtime, timers } = options;
  const look = async (signal: AbortSignal): Promise<Sample> => {
    const [containers, machine] = await Promise.all([runtime.containerUsage(signal), readMachineUsage(timers.now)]);
    return { at: timers.now(), machine, containers };
  };
  const networks = createPodNetworks(runtime);
  const podFolder = (uid: string): string => join(options.dataDir, 'pods', uid);
  const sources: Sources = {
    look,
    sampler: createSampler({ look, timers, signal: options.signal }),
    networks,
    volumes: createVolumeReader(
      (uid) => ({ disk: podFolder(uid), memory: join(podMemoryFolder(options.dataDir), uid) }),
      timers,
      options.signal,
    ),
    podFolder,
    podsIn(sample) {
      const pods = usedPods(options.pods(), sample.containers);
      networks.keep(pods);
      return pods;
    },
  };
  const documents = createDocuments(options, sources);
  return {
    async usage() {
      const pair = await sources.sampler.pair();
      return nodeUsage(nodeName, pair, sources.podsIn(pair.last));
    },
    async document(node, path, signal) {
      if (node !== nodeName) throw serviceUnavailable(`no connection to the node ${JSON.stringify(node)}`);
      return Object.hasOwn(documents, path) ? documents[path]?.(signal) : undefined;
    },
  };
}

interface Sources {
  look(signal: AbortSignal): Promise<Sample>;
  sampler: Sampler;
  networks: PodNetworks;
  volumes: VolumeReader;
  podFolder(podUid: string): string;
  /** Returns the node's current Pods that had running containers when the sample was taken. */
  podsIn(sample: Sample): UsedPod[];
}

type ReadDocument = (signal: AbortSignal) => Promise<NodeDocument>;

function createDocuments(options: NodeReportsOptions, sources: Sources): Readonly<Record<string, ReadDocument>> {
  const { nodeName, dataDir, runtime, metrics, timers } = options;
  const { look, networks, volumes, podsIn } = sources;
  return {
    '/healthz': async () => ({ contentType: 'text/plain; charset=utf-8', texts: ['ok'] }),
    '/configz': async () => jsonDocument({ kubeletconfig: options.configuration }),
    '/runningpods': async (signal) => jsonDocument(runningPods(podsIn(await look(signal)))),
    '/pods': async () => ({ contentType: 'application/json', texts: podListTexts(options.pods()) }),
    '/metrics': async () => {
      const claims = await volumes.claims(options.pods().map(({ pod }) => pod));
      return metricsDocument([...(await metrics.families()), ...volumeMetrics(claims)]);
    },
    '/metrics/resource': async (signal) => {
      const sample = await look(signal);
      return metricsDocument(resourceMetrics(podsIn(sample), sample));
    },
    '/metrics/cadvisor': async (signal) => {
      const pods = podsIn(await look(signal));
      const interfaces = await Promise.all(pods.map((pod) => networks.interfaces(pod, signal)));
      const machine = { cores: availableParallelism(), memoryBytes: totalmem() };
      return metricsDocument(cadvisorMetrics(pods, interfaces, machine));
    },
    '/stats/summary': async (signal) => {
      const pair = await sources.sampler.pair();
      const ports = { ...sources, dataDir, imageFolder: await runtime.imageFolder?.(signal) };
      const facts = await readSummaryFacts(pair, podsIn(pair.last), ports, signal);
      return jsonDocument(summary({ ...facts, node: nodeName, now: timers.now() }));
    },
  };
}

const metricsDocument = (families: readonly MetricFamily[]): NodeDocument => ({
  contentType: METRICS_CONTENT_TYPE,
  texts: [metricsText(families)],
});

const jsonDocument = (body: unknown): NodeDocument => ({
  contentType: 'application/json',
  texts: [`${JSON.stringify(body)}\n`],
});

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

/** Source: the kubelet's /runningpods. */
const runningPods = (pods: readonly UsedPod[]) => ({
  kind: 'PodList',
  apiVersion: 'v1',
  metadata: {},
  items: pods.map(({ pod, containers }) => ({
    metadata: { name: pod.metadata.name, namespace: pod.metadata.namespace, uid: pod.metadata.uid },
    spec: { containers: containers.map(({ name, image }) => ({ name, image, resources: {} })) },
    status: {},
  })),
});

function* podListTexts(pods: readonly NodePod[]): Generator<string> {
  yield '{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[';
  for (const [index, { pod }] of pods.entries()) {
    if (index > 0) yield ',';
    yield encodeOnce(pod);
  }
  yield ']}\n';
}
