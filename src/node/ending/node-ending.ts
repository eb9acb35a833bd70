/**
 * Terminations that the node itself starts: eviction under pressure, preemption for critical Pods, and shutdown of the machine.
 * Also refuses new Pods under pressure and during a shutdown.
 *
 * Boundary: how a Pod terminates is decided in src/lifecycle; which Pod is evicted, in eviction/.
 * Invariants:
 *  1. A termination is written to the Pod's folder before the Pod's worker is notified, so that the next agent continues it. If the
 *     write fails, for example because the disk is full, the Pod is terminated all the same.
 *  2. A shutdown terminates Pods in groups by priority: a group starts when the previous one has ended or its time is up.
 * Source: "Node-pressure Eviction" and "Node Shutdowns" of v1.33; pkg/kubelet/nodeshutdown of v1.33 (order, wording).
 */
import { rmSync } from 'node:fs';
import { hasEnded } from '../../api/core/v1/pod/status/phase.ts';
import type { Node, Pod } from '../../api/generated/types.ts';
import type { EventRecorder } from '../../client/events.ts';
import { nodeEndAfter } from '../../lifecycle/termination.ts';
import type { NodeEnd } from '../../lifecycle/types.ts';
import { keepBallast } from '../../platform/ballast.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import type { Refusal } from '../../scheduling/node-admission.ts';
import { podLogDirectory } from '../container/container-config.ts';
import { type Eviction, startEviction } from '../eviction/eviction.ts';
import type { NodePressure } from '../eviction/pressure.ts';
import { pressureRefusal } from '../eviction/pressure-refusal.ts';
import type { PressureCondition } from '../eviction/thresholds.ts';
import type { UsagePorts } from '../eviction/usage.ts';
import type { RunLookup } from '../pod/run-lookup.ts';
import type { PodWorker } from '../pod/worker/worker.ts';
import type { VolumeManager } from '../volumes/volume-manager.ts';
import { nodeEndFile, readNodeEnd, writeNodeEnd } from './ending-files.ts';
import { groupOf, type ShutdownPeriod } from './shutdown-periods.ts';

/** The time to kill a Pod after its grace period: 2 s each for its last PreExit entry, its app containers and its last PostExit entry. */
const KILL_SECONDS = 6;
const SHUTDOWN_MESSAGE = 'Pod was terminated in response to imminent node shutdown.';

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
  /** The pressure conditions that the node has now. */
  pressures(): ReadonlySet<PressureCondition>;
}

export interface NodeEnding {
  /** The termination of this Pod that a previous agent started; undefined: there is none, or the Pod starts again. */
  begun(pod: Pod): NodeEnd | undefined;
  /** The reason why the node refuses the Pod now: it shuts down or is under pressure. */
  refusal(pod: Pod): Refusal | undefined;
  /**
   * Nothing of the Pod runs, and its files are deleted. The Pod's phase is not enough for that: the runtime may have reported an
   * exit that it has not persisted yet, and would not know of it after a restart.
   */
  cleared(pod: Pod): void;
  /** The runtime has no container of the Pod. */
  emptied(podUid: string): void;
  /** Whether the Pod is terminating, by the API or by the node. */
  isEnding(pod: Pod): boolean;
  /** Whether shutDown() was called. */
  isShuttingDown(): boolean;
  /** Terminates the Pod within its own grace period, to make room for a critical one. */
  preempt(pod: Pod): void;
  /** Starts to monitor pressure and evict Pods. */
  startEviction(parts: {
    pressure: NodePressure;
    containerUsage: UsagePorts['containerUsage'];
    volumes: Pick<VolumeManager, 'hostPath'>;
    logsRoot: string;
    freeDisk(): Promise<unknown>;
  }): void;
  /**
   * Terminates every Pod because the machine shuts down, and refuses new ones from now on. Resolves when each Pod has ended or its
   * time is up, with the Pods that have not ended.
   */
  shutDown(periods: readonly ShutdownPeriod[]): Promise<Pod[]>;
}

export function createNodeEnding(options: NodeEndingOptions): NodeEnding {
  const { timers, log, signal, nodeName, events, workers, isStatic, runs } = options;
  const node: Node = { apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName, uid: nodeName } };
  let eviction: Eviction | undefined;
  let shuttingDown = false;
  /** Terminations that the node has started, by UID, of Pods that have workers. */
  const ends = new Map<string, NodeEnd>();
  /** UIDs of Pods that have ended but still have workers. */
  const over = new Set<string>();
  /** Called with the UID of each Pod that has ended. */
  let overListener: (uid: string) => void = () => undefined;

  const end = (pod: Pod, by: Omit<NodeEnd, 'at'>): void => {
    const uid = pod.metadata.uid ?? '';
    const worker = workers.get(uid);
    if (worker === undefined) return;
    const before = ends.get(uid);
    if (before === undefined || by.graceSeconds < before.graceSeconds) {
      const written = nodeEndAfter(before, by, timers.now());
      ends.set(uid, written);
      try {
        writeNodeEnd(options.podDirectory(uid), written);
      } catch (error) {
        // A full disk may be the very reason for the eviction. An agent that starts before the Pod has ended decides on pressure again.
        log.warn('cannot record that a Pod is being terminated', { podUid: uid, error: (error as Error).message });
      }
    }
    worker.end(by);
  };

  /** Resolves when all of the Pods have ended or the time is up, with those that have not ended. */
  const allOver = (pods: readonly Pod[], seconds: number): Promise<Pod[]> =>
    new Promise((resolve) => {
      const open = new Set(pods.map(({ metadata }) => metadata.uid ?? ''));
      const timer = timers.at(timers.now() + seconds * 1000, () => done());
      const done = (): void => {
        timer.cancel();
        overListener = () => undefined;
        resolve(pods.filter(({ metadata }) => open.has(metadata.uid ?? '')));
      };
      overListener = (uid) => {
        if (open.delete(uid) && open.size === 0) done();
      };
      if (open.size === 0) done();
    });

  return {
    begun(pod) {
      const { uid = '' } = pod.metadata;
      const folder = options.podDirectory(uid);
      if (pod.status?.startTime !== undefined) {
        const read = readNodeEnd(folder);
        if (read === undefined) return undefined;
        // The clock may have been set back since then.
        const end = { ...read, at: Math.min(read.at, timers.now()) };
        ends.set(uid, end);
        return end;
      }
      // A static Pod of this UID was terminated when the machine shut down, and starts again.
      rmSync(nodeEndFile(folder), { force: true });
      return undefined;
    },
    refusal(pod) {
      if (shuttingDown) return { reason: 'NodeShutdown', message: 'Pod was rejected as the node is shutting down.' };
      return pressureRefusal(pod, isStatic(pod), options.pressures());
    },
    cleared({ metadata: { uid = '' } }) {
      if (workers.has(uid)) over.add(uid);
      else {
        over.delete(uid);
        ends.delete(uid);
      }
      eviction?.cleared(uid);
      if (!shuttingDown) keepBallast(options.dataDir);
      overListener(uid);
    },
    emptied: (uid) => eviction?.emptied(uid),
    isShuttingDown: () => shuttingDown,
    isEnding: ({ metadata }) => metadata.deletionTimestamp !== undefined || ends.has(metadata.uid ?? ''),
    preempt(pod) {
      events.event(pod, 'Warning', 'Preempting', PREEMPTED_MESSAGE);
      const graceSeconds = pod.spec?.terminationGracePeriodSeconds ?? 30;
      end(pod, { reason: 'Preempted', message: PREEMPTED_MESSAGE, graceSeconds });
    },
    startEviction({ pressure, containerUsage, volumes, logsRoot, freeDisk }) {
      const volumePath = (pod: Pod, volume: string): string => volumes.hostPath(pod.metadata.uid ?? '', pod, volume);
      const logPath = (pod: Pod): string => podLogDirectory(pod, logsRoot);
      const podPath = ({ metadata }: Pod): string => options.podDirectory(metadata.uid ?? '');
      eviction = startEviction({
        pressure,
        freeDisk,
        usage: { containerUsage, volumePath, logPath, podPath },
        ...{ timers, log, signal },
        isStatic,
        hasContainers: (uid) => runs.view(uid).containers.length > 0,
        endsWithinSeconds: ({ metadata }) => ends.get(metadata.uid ?? '')?.graceSeconds,
        pods: () => [...workers].filter(([uid]) => !over.has(uid)).map(([, worker]) => worker.pod()),
        end(pod, by) {
          events.event(pod, 'Warning', 'Evicted', by.message);
          end(pod, by);
        },
        nodeEvent: (reason, message) => events.event(node, 'Warning', reason, message),
      });
    },
    async shutDown(periods) {
      shuttingDown = true;
      const left: Pod[] = [];
      for (const [index, { priority, seconds }] of periods.entries()) {
        const group = [...workers.values()]
          .map((worker) => worker.pod())
          .filter((pod) => !hasEnded(pod) && !over.has(pod.metadata.uid ?? '') && groupOf(pod, periods) === index);
        log.info('terminating Pods because the node shuts down', { pods: group.length, priority, seconds });
        const allEnded = allOver(group, seconds);
        for (const pod of group) end(pod, { reason: 'NodeShutdown', message: SHUTDOWN_MESSAGE, graceSeconds: seconds });
        left.push(...(await allEnded));
      }
      // Pods whose grace period is up are being killed now.
      return allOver(
        left.filter(({ metadata }) => workers.has(metadata.uid ?? '') && !over.has(metadata.uid ?? '')),
        KILL_SECONDS,
      );
    },
  };
}
