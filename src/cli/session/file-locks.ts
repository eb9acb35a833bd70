/**
 * Locks files. The kernel releases the locks when this process ends, even by kill -9. Node.js has no flock(2), so the flock command locks a
 * file that this process has opened.
 */
import { spawn } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { tryFlock, UserError } from '../../platform/files.ts';
import { missingProgram } from '../../platform/programs/packages.ts';

export interface FileLock {
  readonly fd: number;
  /** Releases the lock and closes the file. Does nothing the second time. */
  release(): void;
}

function lockOf(fd: number): FileLock {
  let isLocked = true;
  return {
    fd,
    release() {
      if (isLocked) closeSync(fd);
      isLocked = false;
    },
  };
}

/**
 * Locks the file, and creates it if necessary. Waits in the kernel while another process has the lock. Rejects if `signal` aborts, and with
 * a UserError if the flock command is not installed.
 */
export async function lockFile(path: string, signal: AbortSignal): Promise<FileLock> {
  signal.throwIfAborted();
  const lock = lockOf(openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600));
  try {
    await lockOpen(lock.fd, '--exclusive', signal);
    return lock;
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** Locks the open file or folder, or changes its lock. Waits in the kernel. Rejects like lockFile(); then the file may have no lock. */
export async function lockOpen(fd: number, how: '--exclusive' | '--shared', signal: AbortSignal): Promise<void> {
  for (;;) {
    const code = await flock(fd, how, signal);
    if (code === 0) return;
    // null: a signal has killed the command. Ctrl+C can reach the command before it has its own process group.
    if (code !== null) throw new Error(`flock ended with exit code ${code}`);
  }
}

function flock(fd: number, how: string, signal: AbortSignal): Promise<number | null> {
  return new Promise((resolve, reject) => {
    const child = spawn('flock', [how, '3'], {
      stdio: ['ignore', 'ignore', 'ignore', fd],
      detached: true,
      signal,
    });
    child.once('error', (error: NodeJS.ErrnoException) =>
      reject(error.code === 'ENOENT' ? new UserError(missingProgram('flock')) : error),
    );
    child.once('exit', resolve);
  });
}

/**
 * Locks the file without waiting. Returns undefined if another process has the lock, or if the file does not exist and `create` is false.
 * Throws a UserError if the flock command is not installed.
 */
export function tryLockFile(path: string, { create }: { create: boolean }): FileLock | undefined {
  let fd: number;
  try {
    fd = openSync(path, create ? constants.O_RDWR | constants.O_CREAT : constants.O_RDWR, 0o600);
  } catch (error) {
    if (!create && (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  if (tryFlock(fd, '--exclusive', '--nonblock')) return lockOf(fd);
  closeSync(fd);
  return undefined;
}
