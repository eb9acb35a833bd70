/**
 * Builds lifepod as the npm package has it. A test run starts some hundred engines and several hundred commands, and each would take half a
 * second of a processor more to load the modules from src/.
 *
 * Writes node_modules/.cache/lifepod-tests/HASH, a folder for each version of the sources, so that a run continues undisturbed while
 * another one builds. Removes folders that no run has used for a day. To run the tests with the sources, set LIFEPOD_TEST_LAUNCHER to the
 * path of bin/lifepod.
 */
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
} from 'node:fs';
import { join } from 'node:path';
import { buildTo } from '../../scripts/bundle.ts';
import { LAUNCHER_VARIABLE, REPOSITORY } from './launcher.ts';

const BUILDS = join(REPOSITORY, 'node_modules/.cache/lifepod-tests');
const INPUTS = ['src/**/*.{ts,proto,json}', 'src/cli/completion/*', 'bin/*', 'scripts/bundle.ts', 'package-lock.json'];
/** A build has links to these parts of the checkout. The launcher must be a copy, because it looks for dist/ next to itself. */
const LINKS = ['.git', 'examples', 'node_modules', 'package.json'];
const UNUSED_MILLIS = 86_400_000;

/** Vitest calls this function once for each project before it starts the workers, which inherit the environment. */
export default async function setUp(): Promise<void> {
  if (process.env[LAUNCHER_VARIABLE] !== undefined) return;
  const folder = join(BUILDS, hashOfInputs());
  if (!existsSync(folder)) await build(folder);
  const now = new Date();
  utimesSync(folder, now, now);
  removeUnused(now.getTime() - UNUSED_MILLIS);
  process.env[LAUNCHER_VARIABLE] = join(folder, 'bin/lifepod');
  // Tests give commands a HOME of their own, which has no compiled code of earlier commands.
  process.env['NODE_COMPILE_CACHE'] ??= join(folder, 'compiled');
}

function hashOfInputs(): string {
  const hash = createHash('sha256').update(REPOSITORY);
  for (const path of globSync(INPUTS, { cwd: REPOSITORY }).sort()) {
    if (!path.endsWith('.test.ts')) hash.update(path).update(readFileSync(join(REPOSITORY, path)));
  }
  return hash.digest('hex').slice(0, 16);
}

async function build(folder: string): Promise<void> {
  const unfinished = `${folder}.${process.pid}`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true });
  await buildTo(join(unfinished, 'dist'));
  cpSync(join(REPOSITORY, 'bin'), join(unfinished, 'bin'), { recursive: true });
  for (const name of LINKS) symlinkSync(join(REPOSITORY, name), join(unfinished, name));
  try {
    renameSync(unfinished, folder);
  } catch (error) {
    // Another run has built the same sources in the meantime.
    if (!existsSync(folder)) throw error;
    rmSync(unfinished, { recursive: true });
  }
}

function removeUnused(before: number): void {
  for (const name of readdirSync(BUILDS)) {
    const path = join(BUILDS, name);
    // Another run may have removed the folder.
    const used = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? before;
    if (used < before) rmSync(path, { recursive: true, force: true });
  }
}
