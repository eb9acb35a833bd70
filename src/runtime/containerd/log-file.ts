/**
 * Opens containerd's log file. containerd writes to the file directly, so that logging continues when the engine ends. A running engine
 * limits the size of the file.
 */
import { closeSync, copyFileSync, fstatSync, ftruncateSync, openSync, readFileSync, rmSync, watch } from 'node:fs';

const MAX_BYTES = 8 * 1024 * 1024;
const TAIL_BYTES = 2000;

export interface LogFile {
  /** For containerd's standard output and error. */
  fd: number;
  /** Returns the last 2000 bytes of the text that was written since the log was opened or last truncated. */
  tail(): string;
  close(): void;
}

/** Opens the log for appending. Until close(), a log that exceeds 8 MiB is copied to `<path>.1`, if possible, and truncated. */
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

/** Copies the log to `<path>.1`. If the copy fails, `<path>.1` is removed, because an incomplete copy would only take up space. */
function keepPrevious(path: string): void {
  const previous = `${path}.1`;
  try {
    copyFileSync(path, previous);
  } catch {
    try {
      rmSync(previous, { force: true });
    } catch {
      // The caller still truncates the log.
    }
  }
}
