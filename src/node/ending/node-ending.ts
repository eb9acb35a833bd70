/**
 * The ends that the node itself puts to Pods, under pressure, for critical Pods and when it shuts down, and the Pods that it
 * takes no more.
 *
 * Boundary: how a Pod ends is the core's; which one under pressure, eviction/'s.
 * Invariants:
 *  1. That a Pod is to end stands in its folder before its worker hears of it: the next agent goes on. Where the disk takes no
 *     word more, the Pod ends all the same.
 *  2. A shutdown ends Pods in the order of their priority, one group when the one before is over, or its time is.
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
import type { PodWorker } from '../pod/worker.ts';
import type { VolumeManager } from '../volumes/volume-manager.ts';
import { nodeEndFile, readNodeEnd, writeNodeEnd } from './ending-files.ts';
import { groupOf, type ShutdownPeriod } from './shutdown-periods.ts';

/** After which nothing is left of a Pod whose time is over: its last PreExit entry, its apps and its last PostExit entry have 2 s each. */
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
  /** That the node is under now. */
  pressures(): ReadonlySet<PressureCondition>;
}

export interface NodeEnding {
  /** What an agent before had begun of the end of this Pod. */
  begun(pod: Pod): NodeEnd | undefined;
  /** Why the node takes no such Pod now. */
  refusal(pod: Pod): Refusal | undefined;
  /**
   * Nothing of the Pod runs, and what it had on the disk is gone. Its phase alone tells too little: the runtime may not have
   * written down the exit that it told of, and would not know it any more at its next start.
   */
  cleared(pod: Pod): void;
  /** The runtime has no container of the Pod. */
  emptied(podUid: string): void;
  /** The Pod ends, whoever wanted it. */
  isEnding(pod: Pod): boolean;
  /** Whether shutDown() was called. */
  isShuttingDown(): boolean;
  /** Ends the Pod within its own grace period, to make room for a critical one. */
  preempt(pod: Pod): void;
  /** Begins to evict Pods. */
  startEviction(parts: {
    pressure: NodePressure;
    containerUsage: UsagePorts['containerUsage'];
    volumes: Pick<VolumeManager, 'hostPath'>;
    logsRoot: string;
    freeDisk(): Promise<unknown>;
  }): void;
  /**
   * Ends every Pod as a machine that shuts down does, and begins none any more. Resolves when each is over, or its time has
   * passed: with those that are not over.
   */
  shutDown(periods: readonly ShutdownPeriod[]): Promise<Pod[]>;
}

export function createNodeEnding(options: NodeEndingOptions): NodeEnding {
  const { timers, log, signal, nodeName, events, workers, isStatic, runs } = options;
  const node: Node = { apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName, uid: nodeName } };
  let eviction: Eviction | undefined;
  let shuttingDown = false;
  /** By UID, of the Pods that have workers. */
  const ends = new Map<string, NodeEnd>();
  /** UIDs of those that are over and have workers still. */
  const over = new Set<string>();
  /** Called with the UID of each Pod that is over. */
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
        // The Pod is ended for that very reason, perhaps: an agent that starts before it is over looks again.
        log.warn('cannot write down that a Pod is ended', { podUid: uid, error: (error as Error).message });
      }
    }
    worker.end(by);
  };

  /** Resolves when all of them are over, or after the time: with those that are not. */
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
        // The clock may have been set back since.
        const end = { ...read, at: Math.min(read.at, timers.now()) };
        ends.set(uid, end);
        return end;
      }
      // A static Pod of this UID ran before the machine was shut down, and begins anew.
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
        log.info('the node shuts down: ending Pods', { pods: group.length, priority, seconds });
        const allEnded = allOver(group, seconds);
        for (const pod of group) end(pod, { reason: 'NodeShutdown', message: SHUTDOWN_MESSAGE, graceSeconds: seconds });
        left.push(...(await allEnded));
      }
      // What did not end by itself is killed when its time is over.
      return allOver(
        left.filter(({ metadata }) => workers.has(metadata.uid ?? '') && !over.has(metadata.uid ?? '')),
        KILL_SECONDS,
      );
    },
  };
}
