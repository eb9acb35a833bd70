/** A log that containers write into a folder of the node. */
import { readFileSync, watch } from 'node:fs';

const DEADLINE_MILLIS = 60_000;

export const linesOf = (log: string): string[] => readFileSync(log, 'utf8').split('\n').slice(0, -1);

/** Once there are so many such lines in the file, which must exist; told of by the kernel. */
export function untilLogHas(log: string, line: string, count = 1): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (outcome: () => void): void => {
      clearTimeout(deadline);
      watcher.close();
      outcome();
    };
    const look = (): void => {
      if (linesOf(log).filter((each) => each === line).length >= count) settle(resolve);
    };
    const watcher = watch(log, look);
    const deadline = setTimeout(
      () => settle(() => reject(new Error(`${log} did not get "${line}":\n${linesOf(log).join('\n')}`))),
      DEADLINE_MILLIS,
    );
    look();
  });
}
