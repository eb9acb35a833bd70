/**
 * The seed of the property tests in src/simulation and of the fuzz test: LIFEPOD_SEED, or one that the sources give. So a run
 * of one checkout tries the same cases wherever it runs, and each change tries new ones.
 */
import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Vitest calls it once, before its workers start; they inherit the environment. */
export default function setUp(): void {
  process.env['LIFEPOD_SEED'] ??= String(seedOf(join(import.meta.dirname, '../../src')));
}

/** From 0 to 2^31 - 1. */
function seedOf(folder: string): number {
  const hash = createHash('sha256');
  const sources = globSync('{lifecycle,node,runtime,simulation}/**/*.ts', { cwd: folder });
  for (const path of sources.sort()) hash.update(path).update(readFileSync(join(folder, path)));
  return hash.digest().readUInt32BE() >>> 1;
}
