/**
 * Lets the processes that end an engine take turns: `lifepod down`, the session that leaves the engine last, and a session that starts a
 * failed engine again to end its Pods. Other processes can find out that one of them is at work.
 *
 * Locks folders that exist, so that nothing is created in a folder in which no engine has run, or on a full disk: the data folder itself
 * for the turns, and its folder `store`, which exists once an engine has run, for the presence of a process, from before its first turn
 * until release(). A process that waits for a turn of its own has lost its shared lock, so the turns do not show its presence. Invariants:
 *  1. A process looks for a stopped engine, starts or stops it, and removes what it has left, only while no other process has a turn.
 *  2. Several processes may delete the Pods of a running engine at the same time, because a second `lifepod down` may set a shorter grace
 *     period.
 *  3. untilEnded() waits for all these processes, also for those that wait for a turn.
 */
import { closeSync, constants, openSync } from 'node:fs';
import { join } from 'node:path';
import { tryFlock } from '../../platform/files.ts';
import { untilAborted } from '../../platform/on-abort.ts';
import { lockOpen } from '../session/file-locks.ts';

export interface Turn {
  /** Takes a turn that other processes may share. Resolves when no other process has a turn of its own. */
  share(): Promise<void>;
  /** Takes a turn of its own. Resolves when no other process has a turn. Meanwhile, another process may have ended the engine. */
  own(): Promise<void>;
  /** Takes a turn of its own only if no other process has a turn. Returns whether it did. */
  tryOwn(): boolean;
  release(): void;
}

const NO_TURN: Turn = {
  share: async () => undefined,
  own: async () => undefined,
  tryOwn: () => true,
  release: () => undefined,
};

/** A process that only calls isBeingEnded() or untilEnded() locks the folder for some milliseconds. A longer lock means a turn. */
const PROBE_SECONDS = 0.5;

/**
 * Resolves with a shared turn. Calls `say` with a line before the first wait for another process. An abort of `signal` ends the waits. If
 * there is no folder, all turns are free.
 */
export async function takeTurn(dataDir: string, say: (line: string) => void, signal: AbortSignal): Promise<Turn> {
  const { turns, present, release } = openLocks(dataDir);
  if (turns === undefined) return NO_TURN;
  const lock = createLock(dataDir, say, signal);
  const turn: Turn = {
    share: () => lock(turns, '--shared'),
    own: () => lock(turns, '--exclusive'),
    tryOwn: () => tryFlock(turns, '--exclusive', '--nonblock'),
    release,
  };
  try {
    if (present !== undefined) await lock(present, '--shared');
    await turn.share();
    return turn;
  } catch (error) {
    release();
    throw error;
  }
}

/** Resolves when no other process is ending the engine, or waits to end it. Otherwise like takeTurn(). */
export async function untilEnded(dataDir: string, say: (line: string) => void, signal: AbortSignal): Promise<void> {
  const { all, release } = openLocks(dataDir);
  const lock = createLock(dataDir, say, signal);
  try {
    for (const fd of all) await lock(fd, '--exclusive');
  } finally {
    release();
  }
}

/** Returns whether another process is ending the engine, or waits to end it; false if this user may not read the folder. */
export function isBeingEnded(dataDir: string): boolean {
  const { all, release } = openLocks(dataDir);
  try {
    return !all.every((fd) => tryFlock(fd, '--exclusive', '--wait', String(PROBE_SECONDS)));
  } finally {
    release();
  }
}

type Lock = (fd: number, how: '--exclusive' | '--shared') => Promise<void>;

function createLock(dataDir: string, say: (line: string) => void, signal: AbortSignal): Lock {
  let hasSaid = false;
  return async (fd, how) => {
    signal.throwIfAborted();
    if (tryFlock(fd, how, '--wait', String(PROBE_SECONDS))) return;
    if (!hasSaid)
      say(`waiting for another process of lifepod, which is starting, stopping or checking the engine of ${dataDir}`);
    hasSaid = true;
    await untilAborted(signal, lockOpen(fd, how, signal));
  };
}

interface Locks {
  /** Undefined if there is no data folder. */
  turns: number | undefined;
  /** Undefined if no engine has run in the data folder. */
  present: number | undefined;
  /** In the order in which every process locks them. */
  all: readonly number[];
  /** Releases the locks. */
  release(): void;
}

function openLocks(dataDir: string): Locks {
  const present = openFolder(join(dataDir, 'store'));
  const turns = openFolder(dataDir);
  const all = [present, turns].filter((fd) => fd !== undefined);
  const release = (): void => {
    for (const fd of all) closeSync(fd);
  };
  return { turns, present, all, release };
}

function openFolder(path: string): number | undefined {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EACCES'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}
