/**
 * A node of a simulated cluster: a real node agent on a simulated runtime. If the agent is killed, the runtime and the files of the node
 * survive.
 */
import { join } from 'node:path';
import type { Client } from '../../../src/client/client.ts';
import type { SharedInformers } from '../../../src/client/shared-informers.ts';
import { clientOf } from '../../../src/client/typed-client.ts';
import { nodeUser } from '../../../src/engine/users.ts';
import { KUBERNETES_VERSION } from '../../../src/engine/version.ts';
import { type NodeAgent, startNodeAgent } from '../../../src/node/agent.ts';
import type { Capacity } from '../../../src/node/status/machine-facts.ts';
import { startNodeStatus } from '../../../src/node/status/node-status.ts';
import { readLastSignOfLife } from '../../../src/node/status/sign-of-life.ts';
import { architecture } from '../../../src/platform/architecture.ts';
import type { Platform } from '../../../src/platform/platform.ts';
import { apiFor } from '../../../src/ports/api-for.ts';
import type { ResourceBackend } from '../../../src/ports/backend.ts';
import type { UserInfo } from '../../../src/ports/request.ts';
import type { ContainerStreams } from '../../../src/runtime/runtime.ts';
import {
  createSimulatedRuntime,
  type RunScript,
  type SimulatedRuntime,
} from '../../../src/runtime/simulated/simulated-runtime.ts';
import { mortal } from './mortal.ts';

/** By default, the container runs until it is stopped, and ends one millisecond after the signal. */
export interface ContainerScript extends RunScript {
  /** When the `exec` probes of the container begin to succeed, after its start; absent: at once. */
  readyAfterMillis?: number;
}

export interface SimulatedRun {
  node: string;
  pod: { namespace: string; name: string };
  container: string;
  /** Counts from 0. */
  attempt: number;
}

export interface NodeSpec {
  /** Labels in addition to those of every Node. */
  labels?: Readonly<Record<string, string>>;
  /** By default 4 CPUs, 8Gi of memory, and 110 Pods. */
  capacity?: { cpus?: number; memoryBytes?: number; pods?: number };
}

export interface SimulatedNode {
  readonly name: string;
  readonly ip: string;
  readonly podCidr: string;
  readonly runtime: SimulatedRuntime;
  /** Undefined before start() and after kill(). */
  readonly agent: NodeAgent | undefined;
  /** Starts an agent with the files that an earlier agent left. Resolves when the agent has started and the Node is registered. */
  start(): Promise<void>;
  /** Ends the agent as kill -9 does: the agent writes nothing afterwards. Containers continue to run. */
  kill(): void;
}

export interface NodeOptions extends Platform {
  /** Such as 1 for node-1. */
  number: number;
  spec: NodeSpec;
  backend: ResourceBackend;
  informersOf(user: UserInfo): SharedInformers;
  folder: string;
  images: string[];
  script: (run: SimulatedRun) => ContainerScript;
  clusterDns: string;
  clusterDomain: string;
}

const SIMULATED_STREAM = async (): Promise<never> => {
  throw new Error('simulated containers have no streams');
};
const streams: ContainerStreams = { exec: SIMULATED_STREAM, attach: SIMULATED_STREAM, portForward: SIMULATED_STREAM };

export function createSimulatedNode(options: NodeOptions): SimulatedNode {
  const { number, backend, folder, timers, log } = options;
  const name = `node-${number}`;
  const place = `${number >> 8}.${number & 255}`;
  const [ip, podCidr] = [`198.18.${place}`, `10.${128 + (number >> 8)}.${number & 255}.0/24`];
  const dataDir = join(folder, name);
  const capacity = capacityOf(options.spec.capacity);
  const runtime = nodeRuntime(name, podCidr, options);
  let life: AbortController | undefined;
  let agent: NodeAgent | undefined;

  return {
    name,
    ip,
    podCidr,
    runtime,
    get agent() {
      return agent;
    },
    async start() {
      if (life !== undefined) throw new Error(`the agent of ${name} runs already`);
      const mine = new AbortController();
      life = mine;
      const isAlive = (): boolean => !mine.signal.aborted;
      const client: Client = clientOf(mortal(apiFor(backend, nodeUser(name)), isAlive));
      const informers = options.informersOf(nodeUser(name));
      const shared = { client, informers, timers, log, signal: mine.signal, nodeName: name, capacity };
      const lived = { ...shared, runtime: mortal({ ...runtime, ...streams }, isAlive) };
      const lastSignOfLife = await readLastSignOfLife(shared, name);
      const [started, reporter] = await Promise.all([
        startNodeAgent({
          ...lived,
          runtimeName: 'simulated',
          nodeIps: [ip],
          dataDir,
          lastSignOfLife,
          clusterDns: [options.clusterDns],
          clusterDomain: options.clusterDomain,
        }),
        startNodeStatus({
          ...lived,
          podCidrs: [podCidr],
          labels: options.spec.labels ?? {},
          internalIps: async () => [ip],
          pressure: { conditions: () => new Set() },
          version: `${KUBERNETES_VERSION}+simulated`,
          systemInfo: async (containerRuntimeVersion, kubeletVersion) => ({
            ...SYSTEM,
            containerRuntimeVersion,
            kubeletVersion,
            machineID: name,
            systemUUID: name,
            bootID: name,
          }),
        }),
      ]);
      if (!isAlive()) return;
      started.onImagesChange(reporter.imagesChanged);
      agent = started;
    },
    kill() {
      life?.abort();
      life = undefined;
      agent = undefined;
    },
  };
}

const SYSTEM = {
  architecture: architecture(),
  kernelVersion: 'simulated',
  kubeProxyVersion: '',
  operatingSystem: 'linux',
  osImage: 'Simulated',
};

function nodeRuntime(node: string, podCidr: string, options: NodeOptions): SimulatedRuntime {
  const { timers, images } = options;
  const scriptOf = (run: { pod: SimulatedRun['pod']; name: string; attempt: number }): ContainerScript => ({
    stopMillis: 1,
    ...options.script({ node, pod: run.pod, container: run.name, attempt: run.attempt }),
  });
  const runtime = createSimulatedRuntime({
    timers,
    images: [...images],
    script: scriptOf,
    exec: (run) => ({ exitCode: timers.now() - (run.startedAt ?? 0) < (scriptOf(run).readyAfterMillis ?? 0) ? 1 : 0 }),
    // Address 0 is that of the network itself, address 1 that of the gateway.
    podIp: (serial) => podCidr.replace(/0\/24$/, String(2 + (serial % 253))),
  });
  return {
    ...runtime,
    // Like a real runtime, this one first reports that everything may have changed.
    events(listener, signal) {
      listener({ type: 'resync' });
      return runtime.events(listener, signal);
    },
  };
}

function capacityOf({ cpus = 4, memoryBytes = 8 * 2 ** 30, pods = 110 }: NodeSpec['capacity'] = {}): Capacity {
  const amounts = {
    cpu: String(cpus),
    'ephemeral-storage': `${100 * 2 ** 20}Ki`,
    memory: `${Math.floor(memoryBytes / 1024)}Ki`,
    pods: String(pods),
  };
  return {
    memoryBytes,
    capacity: amounts,
    allocatable: amounts,
    podLimits: { cpuMilli: cpus * 1000, memoryBytes, pids: 32_768 },
  };
}
