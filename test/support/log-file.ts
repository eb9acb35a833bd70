/** Waits with inotify until a file or folder has the expected content. */
import { readdirSync, readFileSync, watch } from 'node:fs';

const DEADLINE_MILLIS = 120_000;

export const linesOf = (log: string): string[] => readFileSync(log, 'utf8').split('\n').slice(0, -1);

/** The file must exist. Resolves when it contains the line at least `count` times. */
export const untilLogHas = (log: string, line: string, count = 1): Promise<void> =>
  until(
    log,
    () => linesOf(log).filter((each) => each === line).length >= count,
    () => `${log} did not get "${line}":\n${linesOf(log).join('\n')}`,
  );

/** The file must exist. Resolves when it contains at least `count` lines. */
export const untilLogHasLines = (log: string, count: number): Promise<void> =>
  until(
    log,
    () => linesOf(log).length >= count,
    () => `${log} did not get ${count} lines:\n${linesOf(log).join('\n')}`,
  );

/** The folder must exist. Resolves when it contains exactly these files, which must be sorted by name. */
export const untilFolderHas = (folder: string, files: readonly string[]): Promise<void> =>
  until(
    folder,
    () => readdirSync(folder).sort().join() === files.join(),
    () => `${folder} contains ${readdirSync(folder).sort().join()}, not ${files.join()}`,
  );

function until(path: string, done: () => boolean, otherwise: () => string): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (outcome: () => void): void => {
      clearTimeout(deadline);
      watcher.close();
      outcome();
    };
    const look = (): void => {
      if (done()) settle(resolve);
    };
    const watcher = watch(path, look);
    const deadline = setTimeout(() => settle(() => reject(new Error(otherwise()))), DEADLINE_MILLIS);
    look();
  });
}
