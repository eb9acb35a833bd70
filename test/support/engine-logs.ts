/**
 * The ends of the logs of this worker's engines. They are printed when a test fails, because the logs are removed together with the data
 * folders (print-engine-logs.ts).
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';

const LINES = 100;
const MAX_BYTES = 64 * 1024;

/** The end of an engine's log by its data folder; undefined while the engine has not been stopped. */
const engines = new Map<string, string | undefined>();

/** Registers an engine, so that printLogEnds() prints the end of its log. */
export const followLog = (dataDir: string): void => void engines.set(dataDir, undefined);

/** Stores the end of the log before the data folder is removed, so that printLogEnds() can still print it if the running test fails. */
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

/** Prints the ends of the logs of all engines that run, or that were stopped since the last test ended. */
export function printLogEnds(): void {
  for (const [dataDir, end] of engines) {
    console.error(`the last lines of the log of the engine in ${dataDir}:\n${end ?? endOfLog(dataDir)}`);
  }
}

/** Forgets the stopped engines, so that printLogEnds() no longer prints the ends of their logs. */
export const forgetStoppedEngines = (): void => {
  for (const [dataDir, end] of engines) if (end !== undefined) engines.delete(dataDir);
};
