/**
 * Static Pods run even if the API server is unreachable.
 *
 * Invariants:
 * - The containers of a manifest start without any request to the API.
 * - The new Pod of a changed file starts after the old one has ended.
 * - A Pod is recorded on the disk before it starts, and remains recorded until nothing of the Pod is left on the node. A Pod that has
 *   started can be terminated even if this cannot be recorded.
 * - A manifest that becomes invalid or unreadable changes nothing: its Pod runs at least until the file is corrected or removed.
 * - A Pod that a shutdown of the machine has ended starts again after the next start of the machine.
 * Source: "Create static Pods" and "Pod Lifecycle" of the v1.33 documentation; pkg/kubelet/config of v1.33.
 */
import { join } from 'node:path';
import type { Pod, PodStatus } from '../../api/generated/types.ts';
import type { Client } from '../../client/client.ts';
import { uidOf } from '../../machinery/meta.ts';
import type { Platform } from '../../platform/platform.ts';
import type { PodSource } from '../pod/pod-source.ts';
import { createManifests, type Wanted } from './manifests.ts';
import { createMirrors, fullNameOf } from './mirrors.ts';
import { createSlots } from './started-pods.ts';
import { asBeforeTermination, beginning, endingSooner, isShutDown, nextSteps, terminating } from './starts-and-ends.ts';
import { openRecords, type PodRecord } from './status-files.ts';

export interface StaticPodsOptions extends Platform {
  client: Client;
  nodeName: string;
  dataDir: string;
  signal: AbortSignal;
  /** `removed`: whether the Pod has been finalized and no longer exists. */
  apply(pod: Pod, removed: boolean): void;
  writeStatus(mirror: Pod, status: PodStatus): Promise<void>;
  /** While this is true, no static Pod starts. */
  isShuttingDown(): boolean;
}

export interface StaticPods extends PodSource {
  /** Passes the recorded Pods and the Pods of the folder to their workers, and watches the folder. */
  start(): Promise<void>;
  /** Whether the Pod is a static Pod that has started and not ended. */
  owns(pod: Pod): boolean;
  /** Called when nothing of the Pod is left on the node. Starts Pods that waited for its end. */
  ended(uid: string): void;
  /** Called when a mirror of this node was added, changed or removed in the API. */
  mirrorSeen(mirror: Pod, removed: boolean): void;
  /** For a mirror, returns the UID of its static Pod; for other Pods, the same UID. */
  ownUid(uid: string): string;
  /**
   * Ends the static Pods, and starts none until runAll(). May be repeated, with a shorter grace period. `gracePeriodSeconds` replaces the
   * Pods' own grace periods; the minimum is 1 s.
   */
  endAll(gracePeriodSeconds?: number): void;
  /** Withdraws endAll(): starts the static Pods again, those that are ending when they have ended. */
  runAll(): void;
}

export const manifestsFolder = (dataDir: string): string => join(dataDir, 'manifests');

const NOTHING: Wanted = { pods: new Map(), unreadable: new Set() };

export function createStaticPods(options: StaticPodsOptions): StaticPods {
  const { timers, log, signal, dataDir, apply, isShuttingDown } = options;
  const running = new Map<string, PodRecord>();
  /** Undefined until the folder has been read. */
  let wanted: Wanted | undefined;
  let ending: { graceSeconds?: number } | undefined;
  const mirrors = createMirrors({ ...options, podOf: (fullName) => running.get(fullName)?.pod });
  const records = openRecords(join(dataDir, 'static-pods'), log);
  const slots = createSlots(running, { ...options, records, mirrors, apply: (pod) => apply(pod, false) });
  const begin = (record: PodRecord): boolean => slots.tryPut(beginning(record, timers.now()));
  const manifests = createManifests({
    ...options,
    folder: manifestsFolder(dataDir),
    found(read) {
      wanted = read;
      update();
      retryStarts();
    },
  });
  const update = (): void => {
    if (signal.aborted || wanted === undefined) return;
    for (const { kind, record, reason } of nextSteps(running, ending ? NOTHING : wanted, !isShuttingDown())) {
      log.info(`static Pod ${kind === 'end' ? 'ends' : 'starts'}`, { pod: fullNameOf(record.pod) });
      if (kind === 'end')
        slots.putOrEnter({ ...record, pod: terminating(record.pod, timers.now(), reason, ending?.graceSeconds) });
      else if (!begin(record)) manifests.retry();
    }
  };
  const { startAgain, retryStarts } = createSecondStarts(begin, manifests.retry, ({ file, pod }) => {
    const starts = !signal.aborted && ending === undefined && !isShuttingDown();
    return starts && wanted?.unreadable.has(file) === true && !running.has(fullNameOf(pod));
  });
  return {
    isStatic: true,
    async start() {
      slots.restore();
      await manifests.start();
    },
    owns: ({ metadata }) => slots.ofUid(metadata.uid) !== undefined,
    async writeStatus(pod, status) {
      slots.putStatus(uidOf(pod), status);
      // Update later, because the worker is in the middle of a decision.
      if (isShutDown({ status })) queueMicrotask(update);
    },
    finalize: async (pod) => {
      apply(pod, true);
      return {};
    },
    ended(uid) {
      const slot = slots.ofUid(uid);
      if (slot === undefined) return;
      slots.remove(slot);
      update();
      startAgain(slot);
    },
    mirrorSeen: (mirror, removed) => mirrors.seen(mirror, removed),
    ownUid: (uid) => mirrors.mirrored(uid) ?? uid,
    endAll(graceSeconds) {
      ending = { graceSeconds };
      for (const record of endingSooner(running, timers.now(), graceSeconds)) slots.putOrEnter(record);
      update();
    },
    runAll() {
      ending = undefined;
      update();
    },
  };
}

/**
 * Starts Pods again that a shutdown has ended and whose manifests can no longer be read. `startAgain` starts such a Pod from its record. If
 * the new record cannot be written, it calls `retryLater`, which causes a later call of `retryStarts`.
 */
function createSecondStarts(
  begin: (record: PodRecord) => boolean,
  retryLater: () => void,
  isPossible: (record: PodRecord) => boolean,
) {
  let waiting: readonly PodRecord[] = [];
  const startAgain = (record: PodRecord): void => {
    if (!isShutDown(record.pod) || !isPossible(record) || begin(asBeforeTermination(record))) return;
    waiting = [...waiting, record];
    retryLater();
  };
  return {
    startAgain,
    retryStarts() {
      const records = waiting;
      waiting = [];
      records.forEach(startAgain);
    },
  };
}
