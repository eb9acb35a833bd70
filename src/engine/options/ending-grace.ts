/**
 * Stores the grace period with which `lifepod down` wants static Pods to end. `lifepod down` asks the engine with a signal, which carries
 * no value, and writes the value to a file of the data folder before each signal.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { readTextIfPresent, writeFileAtomic } from '../../platform/files.ts';

const pathOf = (dataDir: string): string => join(dataDir, 'ending-grace-period');

/** Undefined: each static Pod has its own grace period. */
export function writeEndingGrace(dataDir: string, seconds: number | undefined): void {
  if (seconds === undefined) rmSync(pathOf(dataDir), { force: true });
  else writeFileAtomic(pathOf(dataDir), `${seconds}\n`);
}

/** Undefined: each static Pod has its own grace period. */
export function readEndingGrace(dataDir: string): number | undefined {
  const text = readTextIfPresent(pathOf(dataDir))?.trim() ?? '';
  return /^\d+$/.test(text) ? Number(text) : undefined;
}
