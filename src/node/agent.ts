/**
 * The node agent runs a worker for each admitted Pod of this node, and for each Pod that exists in the runtime but not in the API.
 *
 * Invariants:
 * - When the agent starts, it adopts the containers in the runtime and does not restart them. Containers without a Pod object are stopped
 *   and removed.
 * - Containers, folders and control groups of unknown Pods are removed only after all Pods of the node are known.
 */
import { join } from 'node:path';
import { isMirrorPod } from '../api/core/v1/pod/mirror.ts';
import type { Pod } from '../api/generated/types.ts';
import { PODS } from '../api/resources.ts';
import type { Informer } from '../client/informer.ts';
import { uidOf } from '../machinery/meta.ts';
import type { NodeConnection } from '../ports/node-connection.ts';
import type { NodeAgentOptions } from './agent-options.ts';
import { type AgentParts, createAgentParts } from './agent-parts.ts';
import { podLogDirectory } from './container/container-config.ts';
import { removeDeadContainers } from './container/dead-containers.ts';
import type { NodeEnding } from './ending/node-ending.ts';
import { ROTATION_LIMITS, startLogRotation } from './logs/log-rotation.ts';
import { createLogSource } from './logs/log-source.ts';
import { startOrphanRemoval } from './orphans.ts';
import { podFromRecords } from './pod/observed-pod.ts';
import { followRuntime } from './pod/runtime-follower.ts';
import { closeRecords, isAmong } from './record/close-records.ts';
import { throughMirrors } from './static-pods/mirrors.ts';
import type { StaticPods } from './static-pods/static-pods.ts';
import { createStreamSource } from './streams/stream-source.ts';
import type { NodePod } from './usage/node-pods.ts';

export interface NodeAgent extends Pick<NodeEnding, 'shutDown'> {
  connection: NodeConnection;
  /** Returns the Pods that have workers, each with the last observation of its sandboxes and containers. */
  pods(): NodePod[];
  onImagesChange(listener: () => void): void;
  /** Ends and starts the static Pods. */
  staticPods: Pick<StaticPods, 'endAll' | 'runAll'>;
  /** Resolves when all statuses of Pods, Events and steps of Pod records from before the call have been written or abandoned. */
  flushed(): Promise<void>;
}

/** Starts the agent. Resolves when it has adopted the existing Pods and has tried to remove the leftovers of Pods that no longer exist. */
export async function startNodeAgent(options: NodeAgentOptions): Promise<NodeAgent> {
  const parts = await createAgentParts(options);
  const { workers, admission, staticPods, services, images, runs, recorder, outages } = parts;
  const { client, runtime, timers, log, signal } = options;
  const objectsKnown = followRuntime({
    runtime,
    workers,
    log,
    signal,
    found(uid, records) {
      if (!admission.adopt(uid)) parts.start(podFromRecords(uid, records), true);
    },
  });
  images.follow();
  startLogRotation({
    ...ROTATION_LIMITS,
    ...options.logRotation,
    timers,
    log,
    signal,
    follow: runs.followLogs,
    reopen: runtime.reopenContainerLog,
    logEnded: async (id) => runtime.logEnded?.(id, signal),
  });
  await staticPods.start();
  const apiPods = followApiPods(parts);
  await Promise.all([apiPods.synced, services.synced, admission.synced]);
  admission.open();
  await objectsKnown();
  outages.end();
  images.collect();
  const isKnown = (pod: Pod): boolean => workers.has(uidOf(pod)) || isAmong(apiPods, pod);
  void closeRecords({ client, nodeName: options.nodeName, log, signal, isKnown, gone: recorder.gone });
  await removeOrphans(parts);
  startEviction(parts);
  return {
    connection: connectionOf(parts),
    pods: () =>
      [...workers].map(([uid, worker]) => {
        const pod = worker.pod();
        return { pod, ...runs.view(uid), logDirectory: podLogDirectory(pod, parts.logsRoot) };
      }),
    onImagesChange: images.onChange,
    staticPods,
    shutDown: parts.ending.shutDown,
    async flushed() {
      const statuses = [...workers.values()].map((worker) => worker.flushed());
      await Promise.all([...statuses, parts.events.flushed(), recorder.flushed()]);
    },
  };
}

function followApiPods({ options, staticPods, apply }: AgentParts): Informer<Pod> {
  const { informers, nodeName, signal } = options;
  const changed = (pod: Pod, removed: boolean): void =>
    isMirrorPod(pod) ? staticPods.mirrorSeen(pod, removed) : apply(pod, removed);
  return informers.follow<Pod>(
    PODS,
    { fieldSelector: `spec.nodeName=${nodeName}`, signal },
    {
      added: (pod) => changed(pod, false),
      updated: (pod, old) => {
        if (pod.metadata.uid !== old.metadata.uid) changed(old, true);
        changed(pod, false);
      },
      deleted: (pod) => changed(pod, true),
    },
  );
}

/** Also removes folders of unknown Pods that appear later. */
async function removeOrphans({ options, logsRoot, workers, volumes, facts }: AgentParts): Promise<void> {
  const { timers, log, signal } = options;
  const isKnown = (uid: string): boolean => workers.has(uid);
  const podsRoot = join(options.dataDir, 'pods');
  await Promise.all([
    startOrphanRemoval({ podsRoot, logsRoot, isKnown, timers, log, signal, removePod: volumes.remove }),
    facts.podCgroups?.removeOrphans(isKnown),
  ]);
}

function startEviction({ options, ending, volumes, logsRoot, images, livePods, removeRunFiles }: AgentParts): void {
  if (options.eviction === undefined) return;
  const { runtime, log, signal } = options;
  ending.startEviction({
    ...options.eviction,
    volumes,
    logsRoot,
    async freeDisk() {
      await removeDeadContainers(livePods(), { runtime, removeRunFiles, log }, signal);
      return images.removeUnused(signal);
    },
  });
}

const connectionOf = ({ options, runs, startGate, staticPods }: AgentParts): NodeConnection =>
  throughMirrors(
    { ...createLogSource(runs.logs, Date.now), ...createStreamSource(runs, options.runtime, startGate) },
    staticPods.ownUid,
  );
