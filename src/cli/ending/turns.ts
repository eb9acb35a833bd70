/**
 * Lets the processes that end an engine take turns: `lifepod down`, the session that leaves the engine last, and a session that starts a
 * failed engine again to end its Pods. Other processes can find out that one of them is at work.
 *
 * Locks the data folder itself, so that nothing is created in a folder in which no engine has run, or on a full disk. Invariants:
 *  1. A process looks for a stopped engine, starts or stops it, and removes what it has left, only while no other process has a turn.
 *  2. Several processes may delete the Pods of a running engine at the same time, because a second `lifepod down` may set a shorter grace
 *     period.
 */
import { closeSync, constants, openSync } from 'node:fs';
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
  const fd = openFolder(dataDir);
  if (fd === undefined) return NO_TURN;
  let hasSaid = false;
  const lock = async (how: '--exclusive' | '--shared'): Promise<void> => {
    signal.throwIfAborted();
    if (tryFlock(fd, how, '--wait', String(PROBE_SECONDS))) return;
    if (!hasSaid)
      say(`waiting for another process of lifepod, which is starting, stopping or checking the engine of ${dataDir}`);
    hasSaid = true;
    await untilAborted(signal, lockOpen(fd, how, signal));
  };
  const turn: Turn = {
    share: () => lock('--shared'),
    own: () => lock('--exclusive'),
    tryOwn: () => tryFlock(fd, '--exclusive', '--nonblock'),
    release: () => closeSync(fd),
  };
  try {
    await turn.share();
    return turn;
  } catch (error) {
    turn.release();
    throw error;
  }
}

/** Resolves when no other process is ending the engine. Otherwise like takeTurn(). */
export async function untilEnded(dataDir: string, say: (line: string) => void, signal: AbortSignal): Promise<void> {
  const turn = await takeTurn(dataDir, say, signal);
  try {
    await turn.own();
  } finally {
    turn.release();
  }
}

/** Returns whether another process is ending the engine; false if this user may not read the folder. */
export function isBeingEnded(dataDir: string): boolean {
  const fd = openFolder(dataDir);
  if (fd === undefined) return false;
  try {
    return !tryFlock(fd, '--exclusive', '--wait', String(PROBE_SECONDS));
  } finally {
    closeSync(fd);
  }
}

function openFolder(path: string): number | undefined {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EACCES'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}
