/** Finds out whether the npm package of a running engine was removed or replaced: parts that the engine has not loaded yet are missing. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { shortCommit } from '../../engine/version.ts';
import { readTextIfPresent } from '../../platform/files.ts';
import { commandLineOf } from '../../platform/processes.ts';
import { replacement } from '../service/replacement.ts';

/**
 * Returns a sentence if the program of the engine was removed or replaced; none otherwise. `running`: the commit from which the engine was
 * built; undefined if it is not known. `script`: the program that the engine runs.
 */
export function programTroubles(
  dataDir: string,
  pid: number,
  running: string | undefined,
  env: NodeJS.ProcessEnv,
  script = commandLineOf(pid).find((word) => word.endsWith('/dist/cli/main.js')),
): string[] {
  if (script === undefined) return [];
  const restart = `type ${replacement(dataDir, pid, env)}`;
  const consequence = 'so requests fail if the engine has not yet loaded the part that they need';
  if (!existsSync(script))
    return [`the program of the engine was removed, ${consequence}: install lifepod again, then ${restart}`];
  const installed = readTextIfPresent(join(script, '../../git-commit'))?.trim();
  if (installed === undefined || running === undefined || installed === running) return [];
  return [
    `the program of the engine was replaced (commit ${shortCommit(running)} runs, ${shortCommit(installed)} is installed), ${consequence}: ${restart}`,
  ];
}
