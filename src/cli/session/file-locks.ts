/**
 * Locks files. The kernel releases the locks when this process ends, even by kill -9. Node.js has no flock(2), so the flock command locks a
 * file that this process has opened.
 */
import { spawn } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { missingFlock, tryFlock } from '../../platform/files.ts';

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
  const fd = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
  try {
    for (;;) {
      const code = await flock(fd, signal);
      if (code === 0) return lockOf(fd);
      // null: a signal has killed the command. Ctrl+C can reach the command before it has its own process group.
      if (code !== null) throw new Error(`flock ended with exit code ${code}`);
    }
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

function flock(fd: number, signal: AbortSignal): Promise<number | null> {
  return new Promise((resolve, reject) => {
    const child = spawn('flock', ['--exclusive', '3'], {
      stdio: ['ignore', 'ignore', 'ignore', fd],
      detached: true,
      signal,
    });
    child.once('error', (error: NodeJS.ErrnoException) => reject(error.code === 'ENOENT' ? missingFlock() : error));
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
