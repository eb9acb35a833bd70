/**
 * Changes the line of a lock file, while an engine holds the lock: the PID of the engine, its DataDirRole, and `stopping` while the engine
 * stops. Other processes read the line without a lock, so each change is one write, and the line never ends before its last word.
 */
import { closeSync, constants, openSync, writeSync } from 'node:fs';
import { lockPath, readTextIfPresent } from '../../platform/files.ts';
import { overwriteLine } from '../../platform/folders/written-file.ts';

const STOPPING = 'stopping';

const wordsIn = (dataDir: string): string[] => readTextIfPresent(lockPath(dataDir))?.trim().split(/\s+/) ?? [];

function change(dataDir: string, act: (fd: number) => void): void {
  const fd = openSync(lockPath(dataDir), constants.O_WRONLY | constants.O_NOFOLLOW);
  try {
    act(fd);
  } finally {
    closeSync(fd);
  }
}

/** Makes the engine with the PID one that no session stops: replaces the role `session`. */
export function keepSessionEngine(dataDir: string, pid: number): void {
  // A reader sees the old or the new word, because the line keeps its length.
  change(dataDir, (fd) => writeSync(fd, `${pid} ${'engine'.padEnd('session'.length)}`, 0));
}

/** Records that this process, the engine, is stopping. Never throws: the engine must stop even if its folder was deleted. */
export function recordStopping(dataDir: string): void {
  changeOwn(dataDir, ([pid, role], fd) => overwriteLine(fd, `${pid} ${role} ${STOPPING}`));
}

/**
 * Empties the line of this process, an engine that has stopped, so that the next owner of the lock is not mistaken for this one before it
 * has written its own line. Never throws.
 */
export function forgetOwner(dataDir: string): void {
  changeOwn(dataDir, (_, fd) => overwriteLine(fd, ''));
}

function changeOwn(dataDir: string, act: (words: string[], fd: number) => void): void {
  try {
    const words = wordsIn(dataDir);
    if (words[0] === String(process.pid)) change(dataDir, (fd) => act(words, fd));
  } catch {
    // The folder was deleted, or the disk is broken.
  }
}

/** Returns whether the engine that has locked the data folder is stopping. Call this only while an engine has the lock. */
export const isStopping = (dataDir: string): boolean => wordsIn(dataDir)[2] === STOPPING;
