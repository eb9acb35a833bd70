/** Notices that the data folder of a running engine is deleted, for commands that use the engine for a long time. */
import { existsSync, type FSWatcher, watch } from 'node:fs';
import { findLost, lostText } from '../../engine/data-folder/lost-folder.ts';
import { lockPath } from '../../platform/files.ts';

/**
 * Resolves with the sentence of lostText() when the data folder is deleted while its engine runs. Does not settle after `signal` has
 * aborted, or if the folder is deleted later but cannot be watched because the machine's limit of inotify watches has been reached.
 */
export async function folderDeleted(dataDir: string, signal: AbortSignal, find = findLost): Promise<string> {
  const deleted = Promise.withResolvers<string>();
  const look = (): void => {
    if (existsSync(lockPath(dataDir))) return;
    const lost = find(dataDir);
    // Without an engine, processes remain only while `lifepod down` ends them.
    const text = lost === undefined || lost.pids.length === 0 ? undefined : lostText(dataDir, lost);
    if (text !== undefined) deleted.resolve(text);
  };
  const watcher = watchFolder(dataDir, look, signal);
  look();
  return deleted.promise.finally(() => watcher?.close());
}

function watchFolder(path: string, changed: () => void, signal: AbortSignal): FSWatcher | undefined {
  try {
    const watcher = watch(path, { signal }, (event) => event === 'rename' && changed());
    watcher.on('error', () => undefined);
    return watcher;
  } catch {
    return undefined;
  }
}
