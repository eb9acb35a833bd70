import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { hasEnded } from '../api/core/v1/pod/status/final-phase.ts';
import type { Pod, Service } from '../api/generated/types.ts';
import { PODS, SERVICES } from '../api/resources.ts';
import { createEventRecorder } from '../client/events.ts';
import { uidOf } from '../machinery/meta.ts';
import { onAbort } from '../platform/on-abort.ts';
import { type Admission, createAdmission } from './admission/admission.ts';
import { factsOf, type NodeAgentOptions } from './agent-options.ts';
import { createEnvironmentSource } from './container/configuration-source.ts';
import { podLogDirectory } from './container/container-config.ts';
import { createRunRemoval, prepareContainer, prepareSandbox } from './container/container-files.ts';
import { createNodeEnding, type NodeEnding } from './ending/node-ending.ts';
import { createPodHandlers } from './handlers/pod-handlers.ts';
import { createNodeImages } from './images/node-images.ts';
import { type NodeFacts, readNodeFacts } from './node-facts.ts';
import { createExecutor } from './pod/executor.ts';
import { createKeptJournal } from './pod/journal-file.ts';
import { createKeptReferences } from './pod/kept-references.ts';
import { createPodLook } from './pod/observed-pod.ts';
import { createApiSource, type PodSource } from './pod/pod-source.ts';
import { createPodWorkers, type PodHooks } from './pod/pod-workers.ts';
import { createRunLookup, type RunLookup } from './pod/run-lookup.ts';
import type { PodWorker } from './pod/worker/worker.ts';
import { createPodRecorder, type PodRecorder } from './record/recorder.ts';
import { createStaticPods } from './static-pods/static-pods.ts';
import { createOutageClock } from './status/sign-of-life.ts';
import { createStartGate } from './streams/exec-gate.ts';
import type { FollowedObjects } from './volumes/followed-objects.ts';
import { createPodMemory, podMemoryFolder } from './volumes/pod-memory.ts';
import { createVolumeManager } from './volumes/volume-manager.ts';

export type AgentParts = Awaited<ReturnType<typeof createAgentParts>>;

/** No worker runs until the caller starts `staticPods` or passes Pods to `start` or `apply`. */
export async function createAgentParts(options: NodeAgentOptions) {
  const { client, timers, log, signal } = options;
  const facts = await readNodeFacts(options);
  const logsRoot = join(options.dataDir, 'logs', 'pods');
  const workers = new Map<string, PodWorker>();
  const pods = client.resource<Pod>(PODS);
  const events = createEventRecorder(client, { component: 'kubelet', host: options.nodeName, timers, log, signal });
  const recorder = createPodRecorder(options);
  const api = createApiSource(pods);
  const staticPods = createStaticPods({
    ...options,
    writeStatus: api.writeStatus,
    apply: (pod, removed) => apply(pod, removed),
    isShuttingDown: () => ending.isShuttingDown(),
  });
  const sourceOf = (pod: Pod): PodSource => (staticPods.owns(pod) ? staticPods : api);
  const isStatic = (pod: Pod): boolean => sourceOf(pod).isStatic;
  const livePods = (): Pod[] => [...workers.values()].map((worker) => worker.pod());
  const base: Base = { options, facts, logsRoot, workers, events, sourceOf, isStatic, livePods };
  const storage = createStorage(base);
  const runs = createRunLookup({
    logsRoot,
    podOf: (uid) => workers.get(uid)?.pod(),
    logEnded: async (id) => options.runtime.logEnded?.(id, signal),
  });
  const actions = createActions(base, storage);
  const ending = createNodeEnding({
    ...options,
    events,
    workers,
    runs,
    isStatic,
    podDirectory: storage.volumes.podDirectory,
    pressures: () => options.eviction?.pressure.conditions() ?? new Set(),
  });
  const admission = createAdmission({
    ...options,
    allocatable: options.capacity.allocatable,
    pods: livePods,
    strictGroups: facts.strictGroups,
    isStatic,
    unwanted: ending.refusal,
    begin: (pod) => start(pod, false),
    refused: (pod, { reason, message }) => events.event(pod, 'Warning', reason, message),
    writeStatus: async (pod, status) => sourceOf(pod).writeStatus(pod, status),
    isEnding: ending.isEnding,
    preempt: ending.preempt,
  });
  const ends = { runs, ending, admission, recorder };
  const outages = createOutageClock(options.lastSignOfLife, timers);
  const start = createPodWorkers(workers, {
    ...options,
    outages,
    recorder,
    events,
    sourceOf,
    hooks: [...lifeHooks(ends, storage, actions), ...machineHooks(base, storage), { released: staticPods.ended }],
    node: factsOf(options),
    journals: createKeptJournal(storage.volumes.podDirectory, options),
    nodeEnd: ending.begun,
    lookAt: createLooks(base, storage),
    execute: actions.execute,
  });
  const apply = createApply(base, storage, ends);
  onAbort(signal, () => workers.forEach((worker) => void worker.stop()));
  return { ...base, ...storage, ...actions, ...ends, staticPods, outages, start, apply };
}

interface Base {
  options: NodeAgentOptions;
  facts: NodeFacts;
  logsRoot: string;
  workers: Map<string, PodWorker>;
  events: ReturnType<typeof createEventRecorder>;
  sourceOf(pod: Pod): PodSource;
  isStatic(pod: Pod): boolean;
  livePods(): Pod[];
}

type Storage = ReturnType<typeof createStorage>;

function createStorage({ options, events, workers, isStatic, livePods }: Base) {
  const { client, runtime, timers, log, signal, dataDir, capacity } = options;
  const memory = createPodMemory(podMemoryFolder(dataDir), signal);
  const podDirectory = (uid: string): string => volumes.podDirectory(uid);
  const objects: FollowedObjects = {
    follow: (owner, keys) => volumes.objects.follow(owner, keys),
    unfollow: (owner) => volumes.objects.unfollow(owner),
  };
  const kept = createKeptReferences({ client, objects, timers, log, signal, podDirectory, memory, isStatic });
  const images = createNodeImages({
    ...options,
    events,
    kept,
    pods: livePods,
    appeared: (name) => workers.forEach((worker) => void worker.imageAppeared(name)),
  });
  const volumes = createVolumeManager({
    ...options,
    memory,
    rootDirectory: join(dataDir, 'pods'),
    allocatable: capacity.allocatable,
    images: {
      status: runtime.imageStatus,
      pull: (pod, reference, abort) => images.pull(pod, reference, () => undefined, abort),
      mounts: runtime.imageMounts,
      release: runtime.releaseImageMounts,
      event: (pod, type, reason, message) => events.event(pod, type, reason, message),
    },
    onObject: kept.changed,
    onRetry: (uid) => workers.get(uid)?.retry('mountVolumes'),
    onFailure: (pod, { reason, message }) => events.event(pod, 'Warning', reason, message),
  });
  onAbort(signal, () => volumes.close());
  return { kept, images, volumes };
}

/** The returned hooks `addresses` remember the addresses of each Pod's last ready sandbox until the Pod's worker ends. */
function createActions(base: Base, { kept, images, volumes }: Storage) {
  const { options, facts, logsRoot, events, isStatic } = base;
  const { informers, runtime, timers, signal, capacity, nodeIps } = options;
  const sandboxIps = new Map<string, readonly string[]>();
  const addresses: PodHooks = {
    observed(uid, { sandboxes }) {
      const ips = sandboxes.find(({ ready }) => ready)?.ips;
      if (ips !== undefined) sandboxIps.set(uid, ips);
    },
    ended: (pod) => sandboxIps.delete(uidOf(pod)),
  };
  const podIps = (pod: Pod): readonly string[] => sandboxIps.get(uidOf(pod)) ?? [];
  const services = informers.follow<Service>(SERVICES, { signal });
  const environment = createEnvironmentSource({
    ...options,
    ...facts.environment,
    hostIps: nodeIps,
    logsRoot,
    services,
    isStatic,
    podIps,
    kept,
    podDirectory: volumes.podDirectory,
    volumePath: volumes.hostPath,
    allocatable: capacity.allocatable,
    memoryCapacityBytes: capacity.memoryBytes,
    seccompRoot: join(options.dataDir, 'seccomp'),
  });
  const removeRunFiles = createRunRemoval(volumes.podDirectory, logsRoot);
  const startGate = createStartGate(timers);
  const execute = createExecutor({
    timers,
    runtime,
    environment,
    prepareContainer,
    prepareSandbox,
    removeRunFiles,
    finalize: async (pod) => base.sourceOf(pod).finalize(pod),
    volumes: kept.guard(volumes),
    pullImage: images.pull,
    cgroups: facts.podCgroups,
    warn: (pod, reason, message) => events.event(pod, 'Warning', reason, message),
    ...createPodHandlers({
      ...options,
      events,
      startGate,
      podIp: (pod) => (pod.spec?.hostNetwork === true ? nodeIps[0] : podIps(pod)[0]),
    }),
  });
  return { addresses, services, removeRunFiles, startGate, execute };
}

interface Ends {
  runs: RunLookup;
  ending: NodeEnding;
  admission: Admission;
  recorder: PodRecorder;
}

/** The order matters: `runs` is updated before `ending` checks whether a Pod still has containers. */
const lifeHooks = (
  { runs, ending, admission, recorder }: Ends,
  { images }: Storage,
  { addresses }: ReturnType<typeof createActions>,
): PodHooks[] => [
  {
    observed: runs.observed,
    ended: (pod) => runs.observed(uidOf(pod), { sandboxes: [], containers: [] }),
  },
  addresses,
  {
    observed: (uid, { containers }) => containers.length === 0 && ending.emptied(uid),
    cleared: ending.cleared,
    ended: ending.cleared,
  },
  { cleared: admission.cleared, ended: admission.cleared },
  { ended: (pod) => recorder.release(uidOf(pod)) },
  { ended: images.podGone },
];

function machineHooks({ facts: { podCgroups }, logsRoot }: Base, { kept }: Storage): PodHooks[] {
  return [
    { started: (pod) => podCgroups?.add(pod), release: async (pod) => podCgroups?.remove(pod) },
    { release: (pod) => rm(podLogDirectory(pod, logsRoot), { recursive: true, force: true }) },
    {
      started(pod, removed) {
        if (!removed && pod.status?.startTime !== undefined && !hasEnded(pod)) void kept.keep(pod);
      },
    },
  ];
}

function createLooks({ options, facts, logsRoot }: Base, { volumes }: Storage) {
  const { runtime, log } = options;
  return (pod: Pod) => {
    const uid = uidOf(pod);
    const podDirectory = volumes.podDirectory(uid);
    const logDirectory = podLogDirectory(pod, logsRoot);
    return createPodLook({ uid, runtime, log, podDirectory, logDirectory, oomKills: facts.podCgroups?.oomKills });
  };
}

/**
 * Passes a new, changed or removed Pod to its worker, or to admission if the Pod has no worker. `removed`: the Pod's object no longer
 * exists.
 */
const createApply =
  ({ workers }: Base, { volumes }: Storage, { admission, recorder }: Ends) =>
  (pod: Pod, removed: boolean): void => {
    const worker = workers.get(uidOf(pod));
    if (!removed) volumes.update(pod);
    if (worker !== undefined) {
      worker.update(pod, removed);
      if (hasEnded(pod)) admission.roomMade();
    } else if (!removed) admission.admit(pod);
    else {
      // The Pod never had a worker, because it waited in admission or was refused; or its worker has ended, because nothing of the Pod was
      // left on the node, and finalizers have kept the object until now.
      admission.forget(pod);
      recorder.gone(pod);
    }
  };
