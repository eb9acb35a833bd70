/**
 * The ends of the logs of this worker's engines. They are printed when a test fails, because the logs are removed together with the data
 * folders.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';

const LINES = 100;
const MAX_BYTES = 64 * 1024;

/** By data folder: the end of the log; undefined while the engine has not been stopped. */
const engines = new Map<string, string | undefined>();

export const followLog = (dataDir: string): void => void engines.set(dataDir, undefined);

/** Call this before the data folder is removed. */
export const keepLogEnd = (dataDir: string): void => void engines.set(dataDir, endOfLog(dataDir));

function endOfLog(dataDir: string): string {
  try {
    const file = openSync(join(dataDir, 'lifepod.log'), 'r');
    try {
      const bytes = Buffer.alloc(MAX_BYTES);
      const length = readSync(file, bytes, 0, MAX_BYTES, Math.max(0, fstatSync(file).size - MAX_BYTES));
      return bytes.toString('utf8', 0, length).trimEnd().split('\n').slice(-LINES).join('\n');
    } finally {
      closeSync(file);
    }
  } catch (error) {
    return String(error);
  }
}

export function printLogEnds(): void {
  for (const [dataDir, end] of engines) {
    console.error(`the last lines of the log of the engine in ${dataDir}:\n${end ?? endOfLog(dataDir)}`);
  }
}

export const forgetStoppedEngines = (): void => {
  for (const [dataDir, end] of engines) if (end !== undefined) engines.delete(dataDir);
};
