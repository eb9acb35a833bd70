/** Entries of podsRoot and logsRoot whose names do not have the form of a Pod's folder belong to the user and are kept. */
import { existsSync, type FSWatcher, watch } from 'node:fs';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { onAbort } from '../platform/on-abort.ts';
import type { Log, Timer, Timers } from '../platform/platform.ts';

const RETRY_MILLIS = 30_000;
const UID = /^[A-Za-z0-9][A-Za-z0-9-]*$/;

export interface OrphanOptions {
  /** Contains one folder per Pod, named by its UID. */
  podsRoot: string;
  /** Contains one folder per Pod, named NAMESPACE_NAME_UID. */
  logsRoot: string;
  isKnown(uid: string): boolean;
  /** Unmounts and removes the Pod's folder. */
  removePod(uid: string, signal: AbortSignal): Promise<void>;
  timers: Timers;
  log: Log;
  signal: AbortSignal;
}

/**
 * Removes the folders and logs of unknown Pods now, and whenever such a folder appears. Resolves after the first pass; rejects if the
 * folders cannot be created or watched. Call this function only after all Pods of the node were listed.
 */
export async function startOrphanRemoval(options: OrphanOptions): Promise<void> {
  const { podsRoot, logsRoot, isKnown, timers, log, signal } = options;
  let timer: Timer | undefined;
  let running: Promise<void> | undefined;
  let again = false;

  const tryRemoving = async (folder: string, remove: () => Promise<void>): Promise<boolean> => {
    try {
      await remove();
      log.info('removed the folder of a Pod that no longer exists', { folder });
      return true;
    } catch (error) {
      if (!signal.aborted)
        log.warn('cannot remove the folder of a Pod that no longer exists', { folder, error: String(error) });
      return false;
    }
  };
  const pass = async (): Promise<void> => {
    let complete = true;
    for (const uid of await readdir(podsRoot))
      if (UID.test(uid) && !isKnown(uid))
        complete = (await tryRemoving(join(podsRoot, uid), () => options.removePod(uid, signal))) && complete;
    for (const name of await readdir(logsRoot)) {
      const uid = uidOfLogFolder(name);
      if (uid === undefined || isKnown(uid)) continue;
      const folder = join(logsRoot, name);
      complete = (await tryRemoving(folder, () => rm(folder, { recursive: true, force: true }))) && complete;
    }
    timer?.cancel();
    if (!complete && !signal.aborted) timer = timers.at(timers.now() + RETRY_MILLIS, () => void look());
  };
  /** A call during a pass causes another pass afterwards. */
  const look = (): Promise<void> => {
    again = true;
    running ??= (async () => {
      while (again && !signal.aborted) {
        again = false;
        await pass();
      }
    })()
      .catch((error: Error) => log.warn('cannot look for orphaned Pod folders', { error: error.message }))
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
      // fs.watch() also reports deletions, which need no pass.
      if (uid !== undefined && !isKnown(uid) && existsSync(join(root, name ?? ''))) void look();
    });
    watcher.on('error', (error) => log.warn('cannot watch the folder', { folder: root, error: error.message }));
    watchers.push(watcher);
  }
  await look();
}

/** Namespaces and names of Pods contain no underscores. */
function uidOfLogFolder(name: string): string | undefined {
  const [namespace, pod, uid, ...rest] = name.split('_');
  return namespace && pod && uid && rest.length === 0 && UID.test(uid) ? uid : undefined;
}
