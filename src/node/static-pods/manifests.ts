/** Invariant: reads run one after the other, so that their results arrive in order. */
import { join } from 'node:path';
import { onAbort } from '../../platform/on-abort.ts';
import type { Log, Timer, Timers } from '../../platform/platform.ts';
import { followFolder, type ManifestFile, readManifestFiles } from './folder.ts';
import { fullNameOf } from './mirrors.ts';
import { ManifestError, readManifest } from './parse-manifest.ts';
import type { PodRecord } from './status-files.ts';

export interface Wanted {
  /** By full name (namespace/name). */
  pods: ReadonlyMap<string, PodRecord>;
  /** The names of the files that do not define a valid Pod, or define a Pod that another file has already defined. */
  unreadable: ReadonlySet<string>;
}

interface Remark {
  message: 'manifest skipped' | 'manifest read with warnings';
  reason: string;
  /** The unknown fields of a manifest that the node uses without them. Absent if there are none, or if it does not use the manifest. */
  ignored?: string;
}

/** No event reports that a disk can be read or written again. */
const RETRY_MILLIS = 5_000;

export interface ManifestsOptions {
  folder: string;
  nodeName: string;
  timers: Timers;
  log: Log;
  signal: AbortSignal;
  found(wanted: Wanted): void;
}

export interface Manifests {
  /** Resolves after the first attempt to read the folder. */
  start(): Promise<void>;
  /** Reads the folder again after RETRY_MILLIS. Further calls until then have no effect. */
  retry(): void;
}

export function createManifests({ folder, nodeName, timers, log, signal, found }: ManifestsOptions): Manifests {
  let remarks: ReadonlyMap<string, Remark> = new Map();
  let reading = Promise.resolve();
  let again: Timer | undefined;
  onAbort(signal, () => again?.cancel());

  const read = async (): Promise<void> => {
    try {
      const result = await readAll(await readManifestFiles(folder), nodeName, timers.now());
      for (const [file, { message, reason }] of result.remarks)
        if (remarks.get(file)?.reason !== reason) log.warn(message, { file: join(folder, file), reason });
      remarks = result.remarks;
      found(result.wanted);
    } catch (error) {
      log.error('the manifests cannot be read', { folder, error: (error as Error).message });
      retry();
    }
  };
  const readNext = (): Promise<void> => {
    reading = reading.then(read);
    return reading;
  };
  const retry = (): void => {
    if (signal.aborted) return;
    again ??= timers.at(timers.now() + RETRY_MILLIS, () => {
      again = undefined;
      void readNext();
    });
  };
  return {
    start() {
      followFolder(folder, () => void readNext(), { log, timers, signal });
      return readNext();
    },
    retry,
  };
}

/**
 * `remarks` are by file name. If several files define a Pod of the same name, the first file is used. An empty file is unreadable without a
 * remark, because many programs create a file, or empty it, before they write its content.
 */
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
      if (text.trim() === '') {
        unreadable.add(name);
        continue;
      }
      const { pod, unknown, warnings } = await readManifest(text, { file: name, nodeName, now });
      const other = pods.get(fullNameOf(pod));
      if (other !== undefined)
        throw new ManifestError(`the Pod ${fullNameOf(pod)} is already defined by ${other.file}`);
      pods.set(fullNameOf(pod), { file: name, pod });
      const reason = [...unknown, ...warnings].join('; ');
      if (reason !== '')
        remarks.set(name, {
          message: 'manifest read with warnings',
          reason,
          ...(unknown.length > 0 && { ignored: unknown.join('; ') }),
        });
    } catch (error) {
      if (!(error instanceof ManifestError)) throw error;
      unreadable.add(name);
      remarks.set(name, { message: 'manifest skipped', reason: error.message });
    }
  }
  return { wanted: { pods, unreadable }, remarks };
}
