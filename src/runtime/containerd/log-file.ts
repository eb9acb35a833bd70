/**
 * Opens containerd's log file. containerd writes to the file directly, so that logging continues when the engine ends. While the engine
 * runs, it limits the size of the file.
 */
import { closeSync, copyFileSync, fstatSync, ftruncateSync, openSync, readFileSync, rmSync, watch } from 'node:fs';

const MAX_BYTES = 8 * 1024 * 1024;
const TAIL_BYTES = 2000;

export interface LogFile {
  /** A file descriptor for containerd's standard output and error, open for appending. */
  fd: number;
  /** Returns the text that was written since the log was opened or last truncated, at most its last 2000 bytes. */
  tail(): string;
  close(): void;
}

/** Opens the log for appending. Until close(), whenever the log exceeds 8 MiB, copies it to `<path>.1`, if possible, and truncates it. */
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
  // If watching the file fails, its size is not limited until an engine opens the file again.
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

/** Copies the log to `<path>.1`. If this fails, removes `<path>.1`, because an incomplete copy would only take up space. */
function keepPrevious(path: string): void {
  const previous = `${path}.1`;
  try {
    copyFileSync(path, previous);
  } catch {
    try {
      rmSync(previous, { force: true });
    } catch {
      // The error is ignored, so that the caller still truncates the log.
    }
  }
}
