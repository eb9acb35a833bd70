/**
 * Changes the line of a lock file, while an engine holds the lock: the PID of the engine, its DataDirRole, and `starting` until the engine
 * serves its API, or `stopping` while the engine stops. Other processes read the line without a lock, so each change is one write, which
 * never shortens the file.
 */
import { closeSync, constants, openSync, watch, writeSync } from 'node:fs';
import { type DataDirLock, dataDirReleased, lockDataDir, lockPath, readTextIfPresent } from '../../platform/files.ts';
import { overwriteLine } from '../../platform/folders/written-file.ts';
import { untilAborted } from '../../platform/on-abort.ts';

const STARTING = 'starting';
const STOPPING = 'stopping';

const textIn = (dataDir: string): string => readTextIfPresent(lockPath(dataDir)) ?? '';
const wordsOf = (line: string): string[] => line.trim().split(/\s+/);

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

/** Locks the data folder like lockDataDir(), for an engine that is starting. */
export const lockForStart = (dataDir: string, role: 'engine' | 'session'): DataDirLock =>
  lockDataDir(dataDir, `${role} ${STARTING}`);

/** Records that this process, an engine that was starting, serves its API, and has written its kubeconfig and its record. Never throws. */
export function recordStarted(dataDir: string): void {
  // The rest of the line remains, because keepSessionEngine() may replace the role at the same time.
  changeOwn(dataDir, (line, fd) => {
    if (wordsOf(line)[2] === STARTING) writeSync(fd, ' '.repeat(STARTING.length), line.indexOf(STARTING));
  });
}

/** Records that this process, the engine, is stopping. Never throws: the engine must stop even if its folder was deleted. */
export function recordStopping(dataDir: string): void {
  changeOwn(dataDir, (line, fd) => {
    const [pid, role] = wordsOf(line);
    overwriteLine(fd, `${pid} ${role} ${STOPPING}`);
  });
}

/**
 * Empties the line of this process, an engine that has stopped, so that the next owner of the lock is not mistaken for this one before it
 * has written its own line. Never throws.
 */
export function forgetOwner(dataDir: string): void {
  changeOwn(dataDir, (_, fd) => overwriteLine(fd, ''));
}

function changeOwn(dataDir: string, act: (line: string, fd: number) => void): void {
  try {
    const line = textIn(dataDir);
    if (wordsOf(line)[0] === String(process.pid)) change(dataDir, (fd) => act(line, fd));
  } catch {
    // The folder was deleted, or the disk is broken.
  }
}

/**
 * Returns whether the engine that has locked the data folder is starting: its kubeconfig may be missing, or be that of the engine before,
 * whose port another server may use now. Call this only while an engine has the lock.
 */
export const isStarting = (dataDir: string): boolean => wordsOf(textIn(dataDir))[2] === STARTING;

/** Returns whether the engine that has locked the data folder is stopping. Call this only while an engine has the lock. */
export const isStopping = (dataDir: string): boolean => wordsOf(textIn(dataDir))[2] === STOPPING;

/** Resolves when no engine in the data folder is starting: it serves its API, or it has ended. Rejects if `signal` aborts. */
export const untilStarted = (dataDir: string, signal: AbortSignal): Promise<void> =>
  untilChanged(dataDir, () => !isStarting(dataDir), signal);

/**
 * Resolves when the process `pid` has released the lock of the data folder. Rejects if `signal` aborts. Does not wait for the lock alone,
 * because another process, such as an engine that systemd starts, may take it at once, and then keeps it.
 */
export async function untilReleasedBy(dataDir: string, pid: number, signal: AbortSignal): Promise<void> {
  const isOver = (): boolean => ![String(pid), ''].includes(wordsOf(textIn(dataDir))[0] ?? '');
  try {
    await untilChanged(dataDir, isOver, signal);
  } catch (error) {
    // Many containers can use up the inotify instances of the machine. A command that ends the engine must not fail because of that.
    if (!NO_WATCHES.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
    await untilAborted(signal, dataDirReleased(dataDir, signal));
  }
}

/** Source: inotify_init(2) and inotify_add_watch(2). */
const NO_WATCHES: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'ENOSPC']);

/**
 * Resolves when the line of the lock file fulfills `isOver`, when no process has the lock, or when there is no such file. Rejects if
 * `signal` aborts.
 */
async function untilChanged(dataDir: string, isOver: () => boolean, signal: AbortSignal): Promise<void> {
  const over = new AbortController();
  const changed = Promise.withResolvers<void>();
  const look = (): void => {
    if (isOver()) changed.resolve();
  };
  try {
    const watcher = watch(lockPath(dataDir), { signal: over.signal }, look);
    watcher.once('error', changed.reject);
    look();
    await untilAborted(signal, Promise.race([changed.promise, dataDirReleased(dataDir, over.signal)]));
  } catch (error) {
    // A first start that has failed removes the file.
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT' || syscall !== 'watch') throw error;
  } finally {
    over.abort();
  }
}
