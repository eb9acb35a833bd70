/**
 * Source: pkg/kubelet/config/file.go of v1.33: hidden files are skipped, folders are not read, and files are in the order of their names.
 */
import { type FSWatcher, watch } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ensurePrivateFolder } from '../../platform/files.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { Log, Timer, Timers } from '../../platform/platform.ts';

const MAX_FILE_BYTES = 10 * 1024 * 1024;
/**
 * fs.watch() reports each change of a file, but not when the writer has finished: after this time without changes, the files count as
 * complete.
 */
const SETTLE_MILLIS = 50;

export interface ManifestFile {
  name: string;
  /** Absent if the file could not be read. `failure` is the reason. */
  text?: string;
  failure?: string;
}

/** Omits hidden entries, and entries that disappear during the call. */
export async function readManifestFiles(folder: string): Promise<ManifestFile[]> {
  const names = (await readdir(folder)).filter((name) => !name.startsWith('.')).sort();
  const files = await Promise.all(names.map((name) => readManifestFile(folder, name)));
  return files.filter((file) => file !== undefined);
}

async function readManifestFile(folder: string, name: string): Promise<ManifestFile | undefined> {
  const path = join(folder, name);
  try {
    const found = await stat(path);
    if (!found.isFile()) return { name, failure: 'it is not a regular file' };
    if (found.size > MAX_FILE_BYTES) return { name, failure: `it has more than ${MAX_FILE_BYTES} bytes` };
    return { name, text: await readFile(path, 'utf8') };
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? undefined : { name, failure: (error as Error).message };
  }
}

export interface FollowOptions {
  log: Log;
  timers: Timers;
  signal: AbortSignal;
}

/** Creates the folder, also whenever it is removed. Calls `changed` when the folder has not changed for SETTLE_MILLIS after a change. */
export function followFolder(folder: string, changed: () => void, { log, timers, signal }: FollowOptions): void {
  let watcher: FSWatcher | undefined;
  let settling: Timer | undefined;
  const settle = (): void => {
    settling?.cancel();
    settling = timers.at(timers.now() + SETTLE_MILLIS, () => {
      // If the folder was removed or replaced, the old watch reports no further events.
      rewatch();
      changed();
    });
  };
  const rewatch = (): void => {
    watcher?.close();
    try {
      ensurePrivateFolder(folder);
      watcher = watch(folder, settle);
      watcher.on('error', (error) =>
        log.error('cannot watch the folder of manifests for changes', { folder, error: error.message }),
      );
    } catch (error) {
      log.error('cannot watch the folder of manifests for changes', { folder, error: (error as Error).message });
    }
  };
  rewatch();
  onAbort(signal, () => {
    settling?.cancel();
    watcher?.close();
  });
}
