import type { Pod, Volume } from '../../api/generated/types.ts';
import type { Client } from '../../client/client.ts';
import { uidOf } from '../../machinery/meta.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import { settleAtMost } from '../../platform/settle.ts';
import { OutcomeUnknownError } from '../../runtime/runtime.ts';
import type { DownwardFacts } from '../container/downward.ts';
import type { ClaimSource } from './claim.ts';
import { NoRoomError } from './file-size-limit.ts';
import type { VolumeImages } from './image.ts';
import type { PodMemory } from './pod-memory.ts';
import { dataReader, type PayloadSource } from './projected-files.ts';
import { showsObjects } from './references.ts';
import { folderOf, keepVolume, type PodDirectories, setUpVolume } from './set-up.ts';
import { createFailures, VolumeError } from './volume-error.ts';

/** Setting up a volume may start a program and take about 1 MB of memory. */
const MAX_AT_ONCE = 8;
export const RETRY_MILLIS = 30_000;

export interface SetUpOptions {
  memory: PodMemory;
  client: Client;
  timers: Timers;
  log: Log;
  nodeName: string;
  /** For resourceFieldRef in volumes and for the size of memory volumes. Absent: unknown. */
  allocatable?: Readonly<Record<string, string>>;
  /** Absent: image volumes are not supported. */
  images?: VolumeImages;
  /**
   * Called for each volume that could not be mounted or updated, and for problems that do not prevent a mount. Not called for the error
   * with which mount() or rewrite() rejects, unless other volumes delayed the rejection. Never called for an abort or an
   * OutcomeUnknownError.
   */
  onFailure?(pod: Pod, error: VolumeError): void;
}

export interface SetUpPorts extends SetUpOptions {
  directoriesOf(podUid: string): PodDirectories;
  alone: ClaimSource['alone'];
}

export interface PodVolumes {
  pod: Pod;
  /** Kept from one run of setUpVolumes() for the Pod to the next. */
  keeps: Pick<PayloadSource, 'tokens' | 'room'>;
}

export function downwardFacts({ nodeName, allocatable = {} }: SetUpOptions): DownwardFacts {
  return { nodeName, allocatable, hostIps: [], podIps: [] };
}

/**
 * Sets up the Pod's volumes for which `kind` returns true. If the update of a volume fails and the node has written its files before, the
 * volume keeps these files, and the error is only logged and reported. For other failures, rejects with one of the errors and reports the
 * VolumeErrors among the others. Resolves to the time at which to set up the volumes again, in milliseconds since the epoch; Infinity if
 * never.
 */
export async function setUpVolumes(
  { pod, keeps }: PodVolumes,
  kind: (volume: Volume) => boolean,
  ports: SetUpPorts,
  signal: AbortSignal,
): Promise<number> {
  signal.throwIfAborted();
  const { client, timers, images, memory, alone } = ports;
  const warn = (error: VolumeError): void => ports.onFailure?.(pod, error);
  const failures = createFailures(warn, timers);
  const source: PayloadSource = {
    client,
    pod,
    facts: downwardFacts(ports),
    ...keeps,
    read: dataReader(client, pod),
    now: () => timers.now(),
  };
  const results = await settleAtMost(MAX_AT_ONCE, (pod.spec?.volumes ?? []).filter(kind), async (volume) => {
    signal.throwIfAborted();
    const folder = (): string => folderOf(ports.directoriesOf(uidOf(pod)), volume);
    try {
      return await setUpVolume(source, { volume, folder: folder(), images, memory, warn, alone }, signal);
    } catch (cause) {
      if (signal.aborted || cause instanceof OutcomeUnknownError) throw cause;
      const error = cause instanceof VolumeError ? cause : new VolumeError(volume.name, (cause as Error).message);
      if (!showsObjects(volume) || !(await keepVolume(source, volume, folder()))) throw failures.add(error);
      const retryAt = reportStale(pod, error, ports);
      return cause instanceof NoRoomError ? () => (cause.fits() ? retryAt : undefined) : retryAt;
    }
  });
  const failure = failures.end(results.flatMap((each) => (each.status === 'rejected' ? [each.reason] : [])));
  if (failure !== undefined) throw failure;
  return earliest(results.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : [])));
}

/**
 * A function in `times` belongs to a volume that exceeded the size limit. It is called after all volumes were set up, because the volume
 * may fit then. Returns Infinity if there is no time.
 */
function earliest(times: readonly (number | undefined | (() => number | undefined))[]): number {
  const known = times.map((time) => (typeof time === 'function' ? time() : time));
  return Math.min(...known.filter((time) => time !== undefined));
}

/** Returns when to retry the update, in milliseconds since the epoch. */
export function reportStale(pod: Pod, error: Error, { timers, log, onFailure }: SetUpOptions): number {
  log.warn('cannot update a volume', { podUid: pod.metadata.uid, error: error.message });
  if (error instanceof VolumeError) onFailure?.(pod, error);
  return timers.now() + RETRY_MILLIS;
}
