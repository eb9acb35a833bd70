/**
 * The node agent: a worker for each Pod that is bound to this node, and for each that the runtime still has though
 * its object is gone.
 *
 * Boundary: rules are in src/lifecycle, calls in executor.ts; here is only who is told what.
 * Invariants:
 *  1. One worker a Pod UID. A Pod of the same name with another UID gets its own.
 *  2. After a start, what the runtime holds is adopted, never restarted; what no object stands for is cleaned up.
 */

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isMirrorPod } from '../api/core/v1/pod/mirror.ts';
import { hasEnded } from '../api/core/v1/pod/status/phase.ts';
import type { Pod, PodStatus, Service } from '../api/generated/types.ts';
import { PODS, SERVICES } from '../api/resources.ts';
import { createEventRecorder } from '../client/events.ts';
import { createInformer } from '../client/informer.ts';
import { onAbort } from '../platform/on-abort.ts';
import type { NodeConnection } from '../ports/node-connection.ts';
import { createAdmission } from './admission/admission.ts';
import { factsOf, type NodeAgentOptions } from './agent-options.ts';
import { createEnvironmentSource } from './container/configuration-source.ts';
import { podLogDirectory } from './container/container-config.ts';
import { createRunRemoval, prepareContainer, prepareSandbox } from './container/container-files.ts';
import { removeDeadContainers } from './container/dead-containers.ts';
import { createNodeEnding, type NodeEnding } from './ending/node-ending.ts';
import { createPodHandlers } from './handlers/pod-handlers.ts';
import { createNodeImages } from './images/node-images.ts';
import { ROTATION_LIMITS, startLogRotation } from './logs/log-rotation.ts';
import { createLogSource } from './logs/log-source.ts';
import { readNodeFacts } from './node-facts.ts';
import { createExecutor } from './pod/executor.ts';
import { createKeptJournal } from './pod/journal-file.ts';
import { createKeptReferences } from './pod/kept-references.ts';
import { createPodLook, podFromRecords } from './pod/observed-pod.ts';
import { startOrphanRemoval } from './pod/orphans.ts';
import { createRunLookup } from './pod/run-lookup.ts';
import { followRuntime } from './pod/runtime-follower.ts';
import { createStatusWrites } from './pod/status-api.ts';
import { type PodWorker, startWorker } from './pod/worker.ts';
import type { RuntimeView } from './pod/worker-ports.ts';
import { closeRecords } from './record/close-records.ts';
import { createPodRecorder } from './record/recorder.ts';
import { throughMirrors } from './static-pods/mirrors.ts';
import { createStaticPods } from './static-pods/static-pods.ts';
import { createOutageClock } from './status/sign-of-life.ts';
import { createStartGate } from './streams/exec-gate.ts';
import { createStreamSource } from './streams/stream-source.ts';
import type { NodePod } from './usage/node-pods.ts';
import { createPodMemory, podMemoryFolder } from './volumes/pod-memory.ts';
import { createVolumeManager } from './volumes/volume-manager.ts';

export interface NodeAgent extends Pick<NodeEnding, 'shutDown'> {
  /** For the API server: the streams of the containers. */
  connection: NodeConnection;
  /** The Pods that it has, with what was last seen of each in the runtime. */
  pods(): NodePod[];
  /** Called when the runtime may have other images than before. */
  onImagesChange(listener: () => void): void;
  /** Ends the static Pods, gracefully; their manifests count no more. Resolves when nothing of them is left. */
  endStaticPods(): Promise<void>;
  /** Resolves when the Events and the steps of Pods' lives recorded until now are written. */
  flushed(): Promise<void>;
}

export async function startNodeAgent(options: NodeAgentOptions): Promise<NodeAgent> {
  const { client, runtime, timers, log, signal, nodeName, dataDir, capacity } = options;
  const { clusterDns, clusterDomain, resolvConf } = options;
  const pods = client.resource<Pod>(PODS);
  const logsRoot = join(dataDir, 'logs', 'pods');
  const events = createEventRecorder(client, { component: 'kubelet', host: nodeName, timers, log, signal });
  const recorder = createPodRecorder({ client, timers, log, signal });
  const memory = createPodMemory(podMemoryFolder(dataDir), signal);
  const volumes = createVolumeManager({
    ...{ rootDirectory: join(dataDir, 'pods'), memory },
    ...{ client, timers, log, nodeName, allocatable: capacity.allocatable },
    images: {
      status: runtime.imageStatus,
      pull: (pod, reference, abort) => images.pull(pod, reference, () => undefined, abort),
      mounts: runtime.imageMounts,
      release: runtime.releaseImageMounts,
      event: (pod, type, reason, message) => events.event(pod, type, reason, message),
    },
    onObject: (key) => kept.changed(key),
    onRetry: (uid) => workers.get(uid)?.retry('mountVolumes'),
    onFailure: (pod, { reason, message }) => events.event(pod, 'Warning', reason, message),
  });
  onAbort(signal, () => volumes.close());
  const { podDirectory } = volumes;
  const isStatic = (pod: Pod): boolean => staticPods.owns(pod);
  const kept = createKeptReferences({ client, timers, log, signal, podDirectory, memory, isStatic });
  const services = createInformer<Service>(client.resource(SERVICES), { log, timers, signal }, {});
  const sandboxIps = new Map<string, readonly string[]>();
  const { podCgroups, ...facts } = await readNodeFacts(options);
  const environment = createEnvironmentSource({
    client,
    nodeName,
    hostIps: options.nodeIps,
    allocatable: capacity.allocatable,
    memoryCapacityBytes: capacity.memoryBytes,
    ...{ clusterDns, clusterDomain, resolvConf },
    logsRoot,
    seccompRoot: join(dataDir, 'seccomp'),
    ...facts.environment,
    ...{ services, isStatic },
    podIps: (pod) => sandboxIps.get(pod.metadata.uid ?? '') ?? [],
    ...{ podDirectory, kept },
    volumePath: volumes.hostPath,
  });
  const livePods = (): Pod[] => [...workers.values()].map((worker) => worker.pod());
  const images = createNodeImages({
    ...options,
    ...{ events, kept },
    pods: livePods,
    appeared: (name) => workers.forEach((worker) => void worker.imageAppeared(name)),
  });
  const removeRunFiles = createRunRemoval(podDirectory, logsRoot);
  const startGate = createStartGate(timers);
  const execute = createExecutor({
    ...{ timers, runtime, client, environment, prepareContainer, prepareSandbox, removeRunFiles },
    volumes: kept.guard(volumes),
    pullImage: images.pull,
    ...(podCgroups === undefined ? {} : { cgroups: podCgroups }),
    warn: (pod, reason, message) => events.event(pod, 'Warning', reason, message),
    ...createPodHandlers({
      ...{ runtime, timers, log, events, startGate },
      podIp: (pod) =>
        pod.spec?.hostNetwork === true ? options.nodeIps[0] : sandboxIps.get(pod.metadata.uid ?? '')?.[0],
    }),
  });

  const writeStatus = createStatusWrites(pods);
  const later = { apply: (pod: Pod, gone: boolean) => apply(pod, gone), isShuttingDown: () => ending.isShuttingDown() };
  const staticPods = createStaticPods({ ...options, ...later, writeStatus });
  const writeAnyStatus = async (pod: Pod, status: PodStatus): Promise<void> =>
    staticPods.owns(pod) ? staticPods.writeStatus(pod, status) : writeStatus(pod, status);
  const cleared = (pod: Pod): void => {
    ending.cleared(pod);
    admission.cleared(pod);
  };
  const executeFor: typeof execute = async (action, pod, abort, progress) => {
    if (action.kind !== 'finalizeDeletion' || !staticPods.owns(pod)) {
      const outcome = await execute(action, pod, abort, progress);
      // Of one that is deleted its end tells.
      if (action.kind === 'unmountVolumes' && pod.metadata.deletionTimestamp === undefined) cleared(pod);
      return outcome;
    }
    staticPods.finalize(pod);
    return {};
  };

  const nodeFacts = factsOf(options);
  const outages = createOutageClock(options.lastSignOfLife, timers);
  const workers = new Map<string, PodWorker>();
  const runs = createRunLookup(logsRoot, (uid) => workers.get(uid)?.pod());
  const pressures = () => options.eviction?.pressure.conditions() ?? new Set();
  const ending = createNodeEnding({ ...options, ...{ events, workers, podDirectory, staticPods, runs, pressures } });
  const journals = createKeptJournal(podDirectory, options);
  const start = (pod: Pod, removed: boolean): void => {
    const uid = pod.metadata.uid ?? '';
    const folders = { podDirectory: podDirectory(uid), logDirectory: podLogDirectory(pod, logsRoot) };
    const look = createPodLook({ ...folders, ...{ uid, runtime, log }, oomKills: podCgroups?.oomKills });
    const observe = async (of: Pod, abort: AbortSignal): Promise<RuntimeView> => {
      const view = await look(of, abort);
      const ips = view.sandboxes.find(({ ready }) => ready)?.ips;
      if (ips !== undefined) sandboxIps.set(uid, ips);
      runs.observed(uid, view);
      if (view.containers.length === 0) ending.emptied(uid);
      return view;
    };
    const worker = startWorker(
      { pod, removed, nodeEnd: ending.begun(pod), journal: journals.read(pod), ...outages.of() },
      {
        timers,
        log: log.child({ pod: `${pod.metadata.namespace}/${pod.metadata.name}` }),
        node: nodeFacts,
        observe,
        execute: executeFor,
        writeStatus: writeAnyStatus,
        record: (of, transitions) => recorder.record(of, transitions),
        keep: journals.keep,
        recorded: () => recorder.written(uid),
        event: (of, { type, reason, message, fieldPath }) => events.event(of, type, reason, message, fieldPath),
        done: () => {
          workers.delete(uid);
          runs.observed(uid, { sandboxes: [], containers: [] });
          cleared(pod);
          recorder.release(uid);
          sandboxIps.delete(uid);
          images.podGone();
          const stays = (what: string) => (error: unknown) =>
            log.warn(`${what} of a Pod that is gone stays`, { uid, error: String(error) });
          const removals = [
            podCgroups?.remove(pod).catch(stays('the control group')),
            rm(podLogDirectory(pod, logsRoot), { recursive: true, force: true }).catch(stays('the log folder')),
          ];
          // A static Pod of this UID may begin anew then.
          void Promise.all(removals).then(() => staticPods.ended(uid));
        },
      },
    );
    workers.set(uid, worker);
    podCgroups?.add(pod);
    if (!removed && pod.status?.startTime !== undefined && !hasEnded(pod)) void kept.keep(pod);
    if (signal.aborted) worker.stop();
  };
  const apply = (pod: Pod, removed: boolean): void => {
    const worker = workers.get(pod.metadata.uid ?? '');
    if (!removed) volumes.update(pod);
    if (worker !== undefined) {
      worker.update(pod, removed);
      if (hasEnded(pod)) admission.roomMade();
    } else if (!removed) admission.admit(pod);
    else tellGone(pod);
  };
  const admission = createAdmission({
    ...options,
    allocatable: capacity.allocatable,
    pods: livePods,
    strictGroups: facts.strictGroups,
    isStatic,
    unwanted: (pod) => ending.refusal(pod),
    begin: (pod) => start(pod, false),
    refused: (pod, { reason, message }) => events.event(pod, 'Warning', reason, message),
    writeStatus: writeAnyStatus,
    isEnding: (pod) => ending.isEnding(pod),
    preempt: (pod) => ending.preempt(pod),
  });
  /** Of a Pod that nothing was left of on the node while finalizers kept its object. */
  const tellGone = (pod: Pod): void => {
    admission.forget(pod);
    recorder.gone(pod);
  };

  onAbort(signal, () => workers.forEach((worker) => void worker.stop()));
  const objectsKnown = followRuntime({
    ...{ runtime, workers, log, signal },
    found(uid, records) {
      if (!admission.adopt(uid)) start(podFromRecords(uid, records), true);
    },
  });
  images.follow();

  startLogRotation({
    ...ROTATION_LIMITS,
    ...options.logRotation,
    ...{ timers, log, signal, follow: runs.followLogs, reopen: runtime.reopenContainerLog },
  });
  await staticPods.start();
  const changed = (pod: Pod, removed: boolean): void =>
    isMirrorPod(pod) ? staticPods.mirrorSeen(pod, removed) : apply(pod, removed);
  const informer = createInformer<Pod>(
    pods,
    { fieldSelector: `spec.nodeName=${nodeName}`, log, timers, signal },
    {
      added: (pod) => changed(pod, false),
      updated: (pod, old) => {
        if (pod.metadata.uid !== old.metadata.uid) changed(old, true);
        changed(pod, false);
      },
      deleted: (pod) => changed(pod, true),
    },
  );
  await Promise.all([informer.synced, services.synced, admission.synced]);
  admission.open();
  await objectsKnown();
  outages.end();
  images.collect();
  const isKnown = (uid: string): boolean => workers.has(uid);
  void closeRecords({ client, log, signal, isKnown, gone: recorder.gone });
  const orphans = { podsRoot: join(dataDir, 'pods'), logsRoot, isKnown, ...{ timers, log, signal } };
  await Promise.all([
    startOrphanRemoval({ ...orphans, removePod: volumes.remove }),
    podCgroups?.removeOrphans(isKnown),
  ]);
  const freeDisk = async (): Promise<unknown> => {
    const known = [...workers.values()].map((worker) => worker.pod());
    await removeDeadContainers(known, { runtime, removeRunFiles, log }, signal);
    return images.removeUnused(signal);
  };
  if (options.eviction !== undefined) ending.startEviction({ ...options.eviction, volumes, logsRoot, freeDisk });
  return {
    connection: throughMirrors(
      { ...createLogSource(runs.logs, Date.now), ...createStreamSource(runs, runtime, startGate) },
      staticPods.ownUid,
    ),
    pods: () =>
      [...workers].map(([uid, worker]) => {
        const pod = worker.pod();
        return { pod, ...runs.view(uid), logDirectory: podLogDirectory(pod, logsRoot) };
      }),
    onImagesChange: images.onChange,
    endStaticPods: () => staticPods.endAll(),
    shutDown: ending.shutDown,
    flushed: async () => void (await Promise.all([events.flushed(), recorder.flushed()])),
  };
}
