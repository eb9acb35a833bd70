/**
 * Static Pods: what the node runs of the files in a folder, whether or not there is an API to ask.
 *
 * Boundary: hands Pods to the workers and shows them in the API as mirrors; the life of a Pod is src/lifecycle's.
 * Invariants:
 *  1. From a file to its containers nothing is asked of the API.
 *  2. Of one name (namespace/name) at most one Pod has anything running: a changed file's new Pod begins when the old
 *     one has ended.
 *  3. A Pod is recorded before its worker hears of it, and until nothing of it is left on the node. Where the disk takes
 *     no record, it does not begin yet, but ends all the same.
 *  4. A file that cannot be read any more changes nothing: its Pod goes on until the file is mended or removed.
 *  5. A Pod that a shutdown of the node has ended ends for good and begins anew once the node does not shut down, also where its
 *     end goes on after the machine has started again.
 * Source: "Create static Pods" and "Pod Lifecycle" of the v1.33 documentation; pkg/kubelet/config of v1.33.
 */
import { join } from 'node:path';
import { withCondition } from '../../api/core/v1/pod/strategy.ts';
import type { Pod, PodStatus } from '../../api/generated/types.ts';
import type { Client } from '../../client/client.ts';
import { formatTime } from '../../machinery/time.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { Platform, Timer } from '../../platform/platform.ts';
import type { PodSource } from '../pod/pod-source.ts';
import { followFolder, type ManifestFile, readManifestFiles } from './folder.ts';
import { ManifestError, readManifest } from './manifest.ts';
import { createMirrors, fullNameOf } from './mirrors.ts';
import { openRecords, type PodRecord } from './records.ts';

export interface StaticPodsOptions extends Platform {
  client: Client;
  nodeName: string;
  dataDir: string;
  signal: AbortSignal;
  /** Gives the Pod, or its change, to its worker; `removed`: the worker's word was heard, nothing is left to say. */
  apply(pod: Pod, removed: boolean): void;
  /** Writes the status of a Pod in the API. */
  writeStatus(mirror: Pod, status: PodStatus): Promise<void>;
  /** Whether the node ends its Pods because the machine shuts down: until its next start no Pod begins. */
  isShuttingDown(): boolean;
}

export interface StaticPods extends PodSource {
  /** Gives the Pods of the folder to their workers, and follows the folder from then on. */
  start(): Promise<void>;
  /** Whether the Pod is one of the files'. */
  owns(pod: Pod): boolean;
  /** Nothing of the Pod is left on the node. */
  ended(uid: string): void;
  /** A mirror of this node appeared, changed or went in the API. */
  mirrorSeen(mirror: Pod, removed: boolean): void;
  /** The UID by which the node knows the Pod that has this UID in the API. */
  ownUid(uid: string): string;
  /** Ends them all, gracefully, and begins none any more. Resolves when nothing of them is left. */
  endAll(): Promise<void>;
}

/** After which a manifest that could not be read or written down is tried again. */
const RETRY_MILLIS = 5_000;

/** Its changes are followed. */
export const manifestsFolder = (dataDir: string): string => join(dataDir, 'manifests');

export function createStaticPods(options: StaticPodsOptions): StaticPods {
  const { client, nodeName, timers, log, signal, dataDir, apply } = options;
  const folder = manifestsFolder(dataDir);
  const records = openRecords(join(dataDir, 'static-pods'), log);
  /** What has begun and not ended, by full name. */
  const slots = new Map<string, PodRecord>();
  /** undefined until the folder has been read. */
  let wanted: Wanted | undefined;
  let remarks: ReadonlyMap<string, Remark> = new Map();
  let ending: PromiseWithResolvers<void> | undefined;
  const podOf = (fullName: string): Pod | undefined => slots.get(fullName)?.pod;
  const mirrors = createMirrors({ client, nodeName, timers, log, signal, podOf, writeStatus: options.writeStatus });

  const put = (record: PodRecord): void => {
    records.write(record);
    enter(record);
  };
  const enter = (record: PodRecord): void => {
    slots.set(fullNameOf(record.pod), record);
    mirrors.changed(fullNameOf(record.pod));
    // Later, as from the API: the worker may be in the middle of a decision.
    queueMicrotask(() => tell(fullNameOf(record.pod)));
  };
  const tell = (fullName: string): void => {
    const pod = podOf(fullName);
    if (pod !== undefined && !signal.aborted) apply(pod, false);
  };
  /** Whether it is recorded. */
  const tryPut = (record: PodRecord): boolean => {
    try {
      put(record);
      return true;
    } catch (error) {
      const pod = fullNameOf(record.pod);
      log.warn('a static Pod cannot be written down', { pod, error: (error as Error).message });
      return false;
    }
  };
  const update = (): void => {
    if (signal.aborted || wanted === undefined) return;
    const steps = nextSteps(slots, ending === undefined ? wanted : NOTHING, !options.isShuttingDown());
    for (const { kind, record, reason } of steps) {
      log.info(`static Pod ${kind === 'end' ? 'ends' : 'begins'}`, { pod: fullNameOf(record.pod) });
      if (kind === 'begin') {
        if (!tryPut(record)) tryAgain();
      } else {
        const last = { ...record, pod: terminating(record.pod, timers.now(), reason) };
        // Its next status is written with it.
        if (!tryPut(last)) enter(last);
      }
    }
    if (slots.size === 0) ending?.resolve();
  };
  /** The disk tells nobody when it takes files again. */
  let again: Timer | undefined;
  const tryAgain = (): void => {
    if (signal.aborted) return;
    again ??= timers.at(timers.now() + RETRY_MILLIS, () => {
      again = undefined;
      void scanNext();
    });
  };
  onAbort(signal, () => again?.cancel());
  const scan = async (): Promise<void> => {
    try {
      const read = await readAll(await readManifestFiles(folder), nodeName, timers.now());
      for (const [file, { message, reason }] of read.remarks)
        if (remarks.get(file)?.reason !== reason) log.warn(message, { file: join(folder, file), reason });
      remarks = read.remarks;
      wanted = read.wanted;
      update();
    } catch (error) {
      log.error('the manifests cannot be read', { folder, error: (error as Error).message });
      tryAgain();
    }
  };
  /** One after the other: a later reading is never overtaken by an earlier one. */
  let scanning = Promise.resolve();
  const scanNext = (): Promise<void> => {
    scanning = scanning.then(scan);
    return scanning;
  };
  const slotOf = (uid: string | undefined): PodRecord | undefined =>
    [...slots.values()].find(({ pod }) => pod.metadata.uid === uid);

  return {
    async start() {
      for (const record of records.load()) if (!tryPut(record)) enter(record);
      followFolder(folder, () => void scanNext(), { log, timers, signal });
      await scanNext();
    },
    owns: ({ metadata }) => slotOf(metadata.uid) !== undefined,
    isStatic: true,
    async writeStatus(pod, status) {
      const slot = slotOf(pod.metadata.uid);
      if (slot !== undefined && JSON.stringify(slot.pod.status) !== JSON.stringify(status))
        put({ ...slot, pod: { ...slot.pod, status } });
      // Later: the worker is in the middle of a decision.
      if (isShutDown({ status })) queueMicrotask(update);
    },
    async finalize(pod) {
      apply(pod, true);
      return {};
    },
    ended(uid) {
      const slot = slotOf(uid);
      if (slot === undefined) return;
      try {
        records.remove(uid);
      } catch (error) {
        // The next agent finds that nothing of it is left.
        log.warn('the record of a static Pod stays', { podUid: uid, error: (error as Error).message });
      }
      slots.delete(fullNameOf(slot.pod));
      mirrors.changed(fullNameOf(slot.pod));
      update();
      // No file says how it begins anew.
      const isKept = ending === undefined && !options.isShuttingDown() && wanted?.unreadable.has(slot.file) === true;
      if (isKept && isShutDown(slot.pod) && !slots.has(fullNameOf(slot.pod)) && !tryPut(anew(slot))) tryAgain();
    },
    mirrorSeen: (mirror, removed) => mirrors.seen(mirror, removed),
    ownUid: (uid) => mirrors.mirrored(uid) ?? uid,
    async endAll() {
      ending ??= Promise.withResolvers<void>();
      update();
      await ending.promise;
      await mirrors.settled();
    },
  };
}

interface Wanted {
  /** By full name. */
  pods: ReadonlyMap<string, PodRecord>;
  /** Files that are there and say nothing. */
  unreadable: ReadonlySet<string>;
}

const NOTHING: Wanted = { pods: new Map(), unreadable: new Set() };

/** What there is to log of a file. */
interface Remark {
  message: 'manifest skipped' | 'manifest read with warnings';
  reason: string;
}

/** What the files say, and the remarks on them, by file. Of two Pods of one name the first file's counts. */
export async function readAll(
  files: readonly ManifestFile[],
  nodeName: string,
  now: number,
): Promise<{ wanted: Wanted; remarks: Map<string, Remark> }> {
  const pods = new Map<string, PodRecord>();
  const unreadable = new Set<string>();
  const remarks = new Map<string, Remark>();
  for (const { name, text, failure } of files) {
    try {
      if (text === undefined) throw new ManifestError(failure ?? '');
      const { pod, warnings } = await readManifest(text, { file: name, nodeName, now });
      const other = pods.get(fullNameOf(pod));
      if (other !== undefined) throw new ManifestError(`the Pod ${fullNameOf(pod)} is that of ${other.file}`);
      pods.set(fullNameOf(pod), { file: name, pod });
      if (warnings.length > 0)
        remarks.set(name, { message: 'manifest read with warnings', reason: warnings.join('; ') });
    } catch (error) {
      if (!(error instanceof ManifestError)) throw error;
      unreadable.add(name);
      remarks.set(name, { message: 'manifest skipped', reason: error.message });
    }
  }
  return { wanted: { pods, unreadable }, remarks };
}

export interface Step {
  kind: 'begin' | 'end';
  record: PodRecord;
  /** Why it ends: its manifest was changed. Absent: removed. */
  reason?: 'Replaced';
}

/** What has to begin and to end for what is there to become what is wanted; `begins`: whether the node takes Pods. */
export function nextSteps(
  slots: ReadonlyMap<string, PodRecord>,
  { pods, unreadable }: Wanted,
  begins: boolean,
): Step[] {
  const steps: Step[] = [];
  for (const [fullName, record] of slots) {
    if (record.pod.metadata.deletionTimestamp !== undefined) continue;
    const next = pods.get(fullName);
    const kept = next === undefined ? unreadable.has(record.file) : next.pod.metadata.uid === record.pod.metadata.uid;
    if (!kept) steps.push({ kind: 'end', record, ...(next === undefined ? {} : { reason: 'Replaced' }) });
    else if (begins && isShutDown(record.pod)) steps.push({ kind: 'end', record });
  }
  if (begins) for (const [fullName, record] of pods) if (!slots.has(fullName)) steps.push({ kind: 'begin', record });
  return steps;
}

/** The shutdown of the machine has ended it, or came before it began: it begins again with it, as upstream's static Pods do. */
const isShutDown = ({ status }: Pick<Pod, 'status'>): boolean =>
  status?.phase === 'Failed' && (status.reason === 'Terminated' || status.reason === 'NodeShutdown');

/** As it was before terminating(), without its status. */
function anew(record: PodRecord): PodRecord {
  const { status, metadata, ...pod } = record.pod;
  const { deletionTimestamp, deletionGracePeriodSeconds, generation, ...kept } = metadata;
  const before = (generation ?? 1) - (deletionTimestamp === undefined ? 0 : 1);
  return { ...record, pod: { ...pod, metadata: { ...kept, ...(before > 0 ? { generation: before } : {}) } } };
}

/**
 * As a delete leaves it in the API, with the reason for its defer containers. Source: v1.33 gives a static Pod a second at least;
 * the specification of defer containers.
 */
function terminating(pod: Pod, now: number, reason: Step['reason']): Pod {
  const graceSeconds = Math.max(1, pod.spec?.terminationGracePeriodSeconds ?? 30);
  const condition = {
    type: 'DeletionReason',
    status: 'True',
    lastTransitionTime: formatTime(now),
    reason: reason ?? '',
  };
  const hasReason = reason !== undefined && (pod.spec?.deferContainers ?? []).length > 0;
  const conditions = withCondition(pod.status?.conditions, condition, formatTime(now));
  return {
    ...pod,
    ...(hasReason ? { status: { ...pod.status, conditions } } : {}),
    metadata: {
      ...pod.metadata,
      generation: (pod.metadata.generation ?? 0) + 1,
      deletionTimestamp: formatTime(now + graceSeconds * 1000),
      deletionGracePeriodSeconds: graceSeconds,
    },
  };
}
