/**
 * Removes what Pods that are gone have left: their volumes' folders and their logs, at the start and when such a folder appears.
 *
 * Boundary: two folders of lifepod's own; what does not bear a Pod's name there is somebody's, and stays.
 * Invariants:
 *  1. Nothing of a Pod that is known is touched.
 *  2. What could not be removed is tried again: mounts may be busy for a while.
 */
import { existsSync, type FSWatcher, watch } from 'node:fs';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { onAbort } from '../platform/on-abort.ts';
import type { Log, Timer, Timers } from '../platform/platform.ts';

const RETRY_MILLIS = 30_000;
const UID = /^[A-Za-z0-9][A-Za-z0-9-]*$/;

export interface OrphanOptions {
  /** One folder a Pod, named by its UID. */
  podsRoot: string;
  /** One folder a Pod: NAMESPACE_NAME_UID. */
  logsRoot: string;
  isKnown(uid: string): boolean;
  /** Unmounts and removes the Pod's folder. */
  removePod(uid: string, signal: AbortSignal): Promise<void>;
  timers: Timers;
  log: Log;
  signal: AbortSignal;
}

/** Resolves when what was there has been looked at. All Pods of the node must be known by then. */
export async function startOrphanRemoval(options: OrphanOptions): Promise<void> {
  const { podsRoot, logsRoot, isKnown, timers, log, signal } = options;
  let timer: Timer | undefined;
  let running: Promise<void> | undefined;
  let again = false;

  const removal = async (what: string, remove: () => Promise<void>): Promise<boolean> => {
    try {
      await remove();
      log.info('removed what a Pod that is gone has left', { folder: what });
      return true;
    } catch (error) {
      if (!signal.aborted) log.warn('what a Pod that is gone has left stays', { folder: what, error: String(error) });
      return false;
    }
  };
  const pass = async (): Promise<void> => {
    let complete = true;
    for (const uid of await readdir(podsRoot))
      if (UID.test(uid) && !isKnown(uid))
        complete = (await removal(join(podsRoot, uid), () => options.removePod(uid, signal))) && complete;
    for (const name of await readdir(logsRoot)) {
      const uid = uidOfLogFolder(name);
      if (uid === undefined || isKnown(uid)) continue;
      const folder = join(logsRoot, name);
      complete = (await removal(folder, () => rm(folder, { recursive: true, force: true }))) && complete;
    }
    timer?.cancel();
    if (!complete && !signal.aborted) timer = timers.at(timers.now() + RETRY_MILLIS, () => void look());
  };
  /** One pass after the other; what happens during one is for the next. */
  const look = (): Promise<void> => {
    again = true;
    running ??= (async () => {
      while (again && !signal.aborted) {
        again = false;
        await pass();
      }
    })()
      .catch((error: Error) => log.warn('cannot look for what is left of Pods', { error: error.message }))
      .finally(() => {
        running = undefined;
      });
    return running;
  };

  const watchers: FSWatcher[] = [];
  onAbort(signal, () => {
    timer?.cancel();
    for (const watcher of watchers) watcher.close();
  });
  for (const [root, uidOf] of [
    [podsRoot, (name: string) => (UID.test(name) ? name : undefined)],
    [logsRoot, uidOfLogFolder],
  ] as const) {
    await mkdir(root, { recursive: true, mode: 0o700 });
    if (signal.aborted) return;
    const watcher = watch(root, (_, name) => {
      const uid = name === null ? undefined : uidOf(name);
      // Its end is told as well.
      if (uid !== undefined && !isKnown(uid) && existsSync(join(root, name ?? ''))) void look();
    });
    watcher.on('error', (error) => log.warn('cannot watch the folder', { folder: root, error: error.message }));
    watchers.push(watcher);
  }
  await look();
}

/** Namespaces and names of Pods have no underscore. */
function uidOfLogFolder(name: string): string | undefined {
  const [namespace, pod, uid, ...rest] = name.split('_');
  return namespace && pod && uid && rest.length === 0 && UID.test(uid) ? uid : undefined;
}
