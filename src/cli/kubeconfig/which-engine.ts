/**
 * Composes the sentence that names the engine that a command uses, for a user with several engines. The same command may reach another
 * engine with sudo than without it, because sudo removes KUBECONFIG.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { engineState } from '../../engine/data-folder/engine-processes.ts';
import { DEFAULT_DATA_DIR, kubeconfigPath } from '../../engine/settings.ts';
import { dataDirOwner, realFolder, UserError } from '../../platform/files.ts';
import { shellQuoted } from '../../platform/programs/typed-program.ts';
import { engineName } from '../hints.ts';
import { printError } from '../progress/standard-output.ts';
import { foldersOfUser } from './engine-folders.ts';
import { ownKubeconfig } from './own-kubeconfig.ts';

/**
 * Returns whether an engine runs in the data folder. If this user may not read the folder, looks for the engine's process instead of its
 * lock. Returns false if dataDirOwner() throws a UserError, for example because `lifepod down` has locked the folder.
 */
export function engineRunsIn(dataDir: string): boolean {
  try {
    return dataDirOwner(dataDir) !== undefined;
  } catch (error) {
    if (error instanceof UserError) return false;
    if ((error as NodeJS.ErrnoException).code === 'EACCES') return engineState(dataDir) !== 'stopped';
    throw error;
  }
}

/**
 * Returns the sentence that names the engine of a command, and the options that select the user's other running engines; undefined if none
 * of those runs. `dataDir`: the folder of the command's engine; undefined if not known.
 */
export function otherEngines(
  dataDir: string | undefined,
  server: string | undefined,
  env: NodeJS.ProcessEnv,
  runs = engineRunsIn,
  folders = foldersOfUser,
  serverIn = serverOf,
): string | undefined {
  const used = dataDir === undefined ? undefined : realFolder(dataDir);
  // A kubeconfig from `lifepod kubeconfig --user` does not show the folder of its engine, so the servers are compared. An engine whose
  // server this user cannot read may be the used one.
  const isUsed = (folder: string): boolean =>
    used === undefined ? [server, undefined].includes(serverIn(folder)) : realFolder(folder) === used;
  const others = [...new Set([DEFAULT_DATA_DIR, ...folders(env)])].filter((folder) => !isUsed(folder) && runs(folder));
  if (others.length === 0) return undefined;
  const options = others.map((folder) => `'--data-dir ${shellQuoted(folder)}'`).join(' or ');
  return `using ${engineName(dataDir, server) ?? 'another engine'}; add ${options} to use the engine there`;
}

/** Returns the server in the kubeconfig of the engine; undefined if this user cannot read the file, or if it is not JSON any more. */
export function serverOf(dataDir: string): string | undefined {
  try {
    const text = readFileSync(ownKubeconfig(dataDir) ?? kubeconfigPath(dataDir), 'utf8');
    const { clusters } = JSON.parse(text) as { clusters?: { cluster?: { server?: string } }[] };
    return clusters?.[0]?.cluster?.server;
  } catch {
    return undefined;
  }
}

/**
 * Prints the sentence of noteOnFolder(), if there is one. `needsEngine`: what the command does if no engine runs in the folder; undefined
 * if it works without an engine.
 */
export function sayWhichEngine(dataDir: string, needsEngine?: 'starts' | 'fails'): void {
  const note = noteOnFolder(dataDir, process.env, needsEngine);
  if (note !== undefined) printError(`lifepod: ${note}`);
}

/**
 * Returns the sentence of otherEngines() for a command that uses the default data folder; undefined for a folder that the user has chosen,
 * and if the command does nothing in the default one: no engine has ever run there, and the command does not start one; or the command
 * fails because no engine runs.
 */
export function noteOnFolder(
  dataDir: string,
  env: NodeJS.ProcessEnv,
  needsEngine?: 'starts' | 'fails',
  others = otherEngines,
  defaultFolder = DEFAULT_DATA_DIR,
  runs = engineRunsIn,
): string | undefined {
  const isDefault = realFolder(dataDir) === realFolder(defaultFolder);
  const isUsed =
    needsEngine === 'starts' ||
    (existsSync(join(dataDir, 'engine.json')) && (needsEngine !== 'fails' || runs(dataDir)));
  return isDefault && isUsed ? others(dataDir, undefined, env) : undefined;
}
