/**
 * containerd's log: containerd writes the file itself, so that it continues when the engine ends. The engine limits the size.
 */
import { closeSync, copyFileSync, fstatSync, ftruncateSync, openSync, readFileSync, rmSync, watch } from 'node:fs';

const MAX_BYTES = 8 * 1024 * 1024;
const TAIL_BYTES = 2000;

export interface LogFile {
  /** Open for appending, for the child's standard output and error. */
  fd: number;
  /** The last lines written since the file was opened. */
  tail(): string;
  close(): void;
}

/** The previous 8 MiB are kept in `<path>.1` if the disk has room for them. */
export function openLogFile(path: string): LogFile {
  const fd = openSync(path, 'a', 0o600);
  let openedAt = fstatSync(fd).size;
  const bound = (): void => {
    if (fstatSync(fd).size <= MAX_BYTES) return;
    keepPrevious(path);
    ftruncateSync(fd);
    openedAt = 0;
  };
  bound();
  const watcher = watch(path, { persistent: false }, bound);
  // The next engine limits the size again.
  watcher.on('error', () => undefined);
  return {
    fd,
    tail: () => readFileSync(path).subarray(openedAt).subarray(-TAIL_BYTES).toString().trim(),
    close: () => {
      watcher.close();
      closeSync(fd);
    },
  };
}

/** Keeps the previous log completely or not at all: a part of it would only take up space. */
function keepPrevious(path: string): void {
  const previous = `${path}.1`;
  try {
    copyFileSync(path, previous);
  } catch {
    try {
      rmSync(previous, { force: true });
    } catch {
      // Limiting the size is more important.
    }
  }
}
