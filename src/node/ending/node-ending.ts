/**
 * Boundary: src/lifecycle decides how a Pod terminates, eviction/ decides which Pod is evicted, and shutdown.ts decides the order of a
 * shutdown.
 * Invariant: a later termination can only shorten an earlier one.
 * Source: "Node-pressure Eviction" and "Node Shutdowns" of v1.33; pkg/kubelet/nodeshutdown of v1.33 (order, wording).
 */
import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type { Node, Pod } from '../../api/generated/types.ts';
import type { EventRecorder } from '../../client/events.ts';
import type { NodeEnd } from '../../lifecycle/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import { keepBallast } from '../../platform/disk-reserve.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import type { Refusal } from '../../scheduling/node-admission.ts';
import { podLogDirectory } from '../container/container-config.ts';
import { type Eviction, type EvictionOptions, startEviction } from '../eviction/eviction.ts';
import type { NodePressure } from '../eviction/pressure.ts';
import { pressureRefusal } from '../eviction/pressure-refusal.ts';
import type { PressureCondition } from '../eviction/thresholds.ts';
import type { UsagePorts } from '../eviction/usage.ts';
import type { RunLookup } from '../pod/run-lookup.ts';
import type { PodWorker } from '../pod/worker/worker.ts';
import type { VolumeManager } from '../volumes/volume-manager.ts';
import { createEndedPods, type EndedPods } from './ended-pods.ts';
import { createNodeEnds, type NodeEnds } from './pod-terminations.ts';
import { terminateByPriority } from './shutdown.ts';
import type { ShutdownPeriod } from './shutdown-periods.ts';

const PREEMPTED_MESSAGE = 'Preempted in order to admit critical pod';

export interface NodeEndingOptions {
  timers: Timers;
  log: Log;
  signal: AbortSignal;
  nodeName: string;
  dataDir: string;
  events: EventRecorder;
  podDirectory(uid: string): string;
  workers: ReadonlyMap<string, PodWorker>;
  isStatic(pod: Pod): boolean;
  runs: Pick<RunLookup, 'view'>;
  pressures(): ReadonlySet<PressureCondition>;
}

export interface EvictionParts {
  pressure: NodePressure;
  containerUsage: UsagePorts['containerUsage'];
  volumes: Pick<VolumeManager, 'hostPath'>;
  logsRoot: string;
  freeDisk(): Promise<unknown>;
}

export interface NodeEnding {
  /** Returns the termination of this Pod that a previous agent started; undefined: there is none, or the Pod starts again. */
  begun(pod: Pod): NodeEnd | undefined;
  /** Returns why the node refuses the Pod, under pressure or during a shutdown. */
  refusal(pod: Pod): Refusal | undefined;
  /**
   * Called, possibly several times, when nothing of the Pod runs and its volumes are unmounted. A final phase in the status is not
   * sufficient, because a restarted runtime may lose an exit that it has reported.
   */
  cleared(pod: Pod): void;
  /**
   * Called, possibly several times, when the runtime has no container of the Pod. Evictions stop waiting for the removal of the Pod's
   * containers.
   */
  emptied(podUid: string): void;
  /** Whether the Pod is being deleted in the API or terminated by the node. */
  isEnding(pod: Pod): boolean;
  isShuttingDown(): boolean;
  /** Terminates the Pod with its own grace period, to make room for a critical Pod. */
  preempt(pod: Pod): void;
  /** From now on, evicts Pods when the node is under pressure, and Pods that exceed their disk limits. */
  startEviction(parts: EvictionParts): void;
  /**
   * Terminates all Pods, because the machine shuts down, and refuses new Pods from then on. Resolves to the Pods whose containers have not
   * ended in their time; see terminateByPriority().
   */
  shutDown(periods: readonly ShutdownPeriod[]): Promise<Pod[]>;
}

export function createNodeEnding(options: NodeEndingOptions): NodeEnding {
  const { timers, log, events, workers } = options;
  const ends = createNodeEnds(options);
  const endedPods = createEndedPods(timers);
  let eviction: Eviction | undefined;
  let shuttingDown = false;
  return {
    begun: ends.restore,
    refusal(pod) {
      if (shuttingDown) return { reason: 'NodeShutdown', message: 'Pod was rejected as the node is shutting down.' };
      return pressureRefusal(pod, options.isStatic(pod), options.pressures());
    },
    cleared(pod) {
      const uid = uidOf(pod);
      const hasWorker = workers.has(uid);
      if (!hasWorker) ends.forget(uid);
      endedPods.add(uid, hasWorker);
      eviction?.cleared(uid);
      // The end of the Pod may have freed enough disk space to reserve some for the engine again.
      if (!shuttingDown) keepBallast(options.dataDir);
    },
    emptied: (uid) => eviction?.emptied(uid),
    isShuttingDown: () => shuttingDown,
    isEnding: (pod) => pod.metadata.deletionTimestamp !== undefined || ends.get(uidOf(pod)) !== undefined,
    preempt(pod) {
      events.event(pod, 'Warning', 'Preempting', PREEMPTED_MESSAGE);
      const graceSeconds = pod.spec?.terminationGracePeriodSeconds ?? 30;
      ends.end(pod, { reason: 'Preempted', message: PREEMPTED_MESSAGE, graceSeconds });
    },
    startEviction(parts) {
      eviction = startEviction(evictionOptions(options, parts, ends, endedPods));
    },
    async shutDown(periods) {
      shuttingDown = true;
      const left = await terminateByPriority(periods, { workers, ends, endedPods, log });
      // A Pod that has a final phase by now, or no containers, has ended, even if its sandbox or volumes have not been removed yet.
      return left.filter((pod) => {
        const known = workers.get(uidOf(pod))?.pod();
        return known !== undefined && !hasEnded(known) && hasContainers(options.runs, uidOf(pod));
      });
    },
  };
}

const hasContainers = (runs: NodeEndingOptions['runs'], uid: string): boolean => runs.view(uid).containers.length > 0;

function evictionOptions(
  { timers, log, signal, nodeName, events, podDirectory, workers, isStatic, runs }: NodeEndingOptions,
  { pressure, containerUsage, volumes, logsRoot, freeDisk }: EvictionParts,
  ends: NodeEnds,
  endedPods: EndedPods,
): EvictionOptions {
  const node: Node = { apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName, uid: nodeName } };
  return {
    pressure,
    freeDisk,
    usage: {
      containerUsage,
      volumePath: (pod, volume) => volumes.hostPath(uidOf(pod), pod, volume),
      logPath: (pod) => podLogDirectory(pod, logsRoot),
      podPath: (pod) => podDirectory(uidOf(pod)),
    },
    timers,
    log,
    signal,
    isStatic,
    hasContainers: (uid) => hasContainers(runs, uid),
    endsWithinSeconds: (pod) => ends.get(uidOf(pod))?.graceSeconds,
    pods: () => [...workers].filter(([uid]) => !endedPods.has(uid)).map(([, worker]) => worker.pod()),
    end(pod, by) {
      events.event(pod, 'Warning', 'Evicted', by.message);
      ends.end(pod, by);
    },
    nodeEvent: (reason, message) => events.event(node, 'Warning', reason, message),
  };
}
