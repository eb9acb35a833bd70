/**
 * The seed of the random tests is LIFEPOD_SEED, or a hash of the sources. All runs of one checkout try the same cases, and each change of
 * the sources tries new ones.
 */
import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Vitest calls this function once before it starts its workers, which inherit the environment. */
export default function setUp(): void {
  process.env['LIFEPOD_SEED'] ??= String(seedOf(join(import.meta.dirname, '../../src')));
}

/** Returns a number from 0 to 2^31 - 1. */
function seedOf(folder: string): number {
  const hash = createHash('sha256');
  const sources = globSync('{lifecycle,node,runtime,simulation}/**/*.ts', { cwd: folder });
  for (const path of sources.sort()) hash.update(path).update(readFileSync(join(folder, path)));
  return hash.digest().readUInt32BE() >>> 1;
}
