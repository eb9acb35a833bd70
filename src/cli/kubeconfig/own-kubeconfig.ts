/** Finds the kubeconfig that the user who types a command can read: the administrator's, or the user's own copy. Also makes this copy. */
import { accessSync, constants, existsSync } from 'node:fs';
import { dirname } from 'node:path';
import {
  copyKubeconfigFor,
  type InvokingUser,
  invokingUser,
  userKubeconfigPath,
} from '../../engine/certificates/user-kubeconfigs.ts';
import { engineState } from '../../engine/data-folder/engine-processes.ts';
import { NeedsRootError } from '../../engine/machine-checks.ts';
import { DEFAULT_DATA_DIR, kubeconfigPath } from '../../engine/settings.ts';
import { dataDirOwner, realFolder, UserError } from '../../platform/files.ts';
import { shellQuoted } from '../../platform/programs/typed-program.ts';
import { hintsFor } from '../hints.ts';
import { printError } from '../progress/standard-output.ts';
import { notRunning } from '../service/not-running.ts';

export interface UsableKubeconfig {
  path: string;
  /** The user who can read the kubeconfig, besides root; undefined if only root can read it. */
  user?: InvokingUser;
  /** The user who has typed the command, if there is no copy for this user. */
  without?: InvokingUser;
  /** The variable that names the user who has typed the command, if this machine does not know that user, such as `DOAS_USER=joe`. */
  unknown?: string | undefined;
}

const isRoot = (): boolean => process.geteuid?.() === 0;

/** Returns the path of this user's copy; undefined for root, and if there is no copy. */
export function ownKubeconfig(dataDir: string): string | undefined {
  const uid = process.geteuid?.() ?? 0;
  const path = userKubeconfigPath(dataDir, uid);
  return uid !== 0 && existsSync(path) ? path : undefined;
}

/** Returns whether this user may not read the data folder; false if the folder does not exist. */
export function isOnlyForRoot(dataDir: string): boolean {
  if (isRoot()) return false;
  try {
    accessSync(dataDir, constants.R_OK | constants.X_OK);
    return false;
  } catch (error) {
    return !['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '');
  }
}

/**
 * Returns the error for a user who may not read the data folder; undefined if isOnlyForRoot() returns false. `isWanted`: see
 * needsOwnKubeconfig().
 */
export function onlyForRoot(dataDir: string, isWanted = false): UserError | undefined {
  if (!isOnlyForRoot(dataDir)) return undefined;
  return engineState(dataDir) === 'stopped'
    ? new UserError(notRunning(dataDir))
    : needsOwnKubeconfig(dataDir, process.env, isWanted);
}

/** Returns the error of a command whose user may not read the data folder. `isWanted`: whether the command is `lifepod kubeconfig`. */
export function needsOwnKubeconfig(dataDir: string, env: NodeJS.ProcessEnv, isWanted = false): NeedsRootError {
  const { engine } = hintsFor({ dataDir: isDefault(dataDir) ? undefined : dataDir }, env, undefined, true);
  const command = `eval "$(${engine('kubeconfig')})"`;
  const limited = `'${engine('kubeconfig --user NAME')}'`;
  return new NeedsRootError(
    `read the data folder ${dataDir}`,
    isWanted
      ? { command, otherwise: `, or ${limited} for a kubeconfig with fewer rights` }
      : { otherwise: `, or get a kubeconfig of your own with '${command}', or one with fewer rights with ${limited}` },
  );
}

const isDefault = (dataDir: string): boolean => dataDir === realFolder(DEFAULT_DATA_DIR);

/** Returns the kubeconfig of a running engine for the user who runs this process as root, perhaps through sudo. */
export function usableKubeconfig(dataDir: string): UsableKubeconfig {
  const user = invokingUser(process.env);
  if (user === undefined) return { path: kubeconfigPath(dataDir), unknown: unknownInvoker(process.env) };
  const path = userKubeconfigPath(dataDir, user.uid);
  return existsSync(path) ? { path, user } : { path: kubeconfigPath(dataDir), without: user };
}

/** Returns the variable with which sudo, doas or pkexec names a user other than root, such as `DOAS_USER=joe`; undefined if none does. */
export function unknownInvoker(env: NodeJS.ProcessEnv): string | undefined {
  const name = ['SUDO_UID', 'DOAS_USER', 'PKEXEC_UID'].find((each) => env[each] !== undefined);
  const value = name === undefined ? undefined : env[name];
  return value === undefined || ['0', 'root'].includes(value) ? undefined : `${name}=${shellQuoted(value)}`;
}

/**
 * Throws a UserError if no engine runs in the data folder, and a NeedsRootError if an engine may run there, but this user may not read the
 * folder.
 */
export function requireRunning(dataDir: string): void {
  const isHidden = isOnlyForRoot(dataDir);
  if (isHidden ? engineState(dataDir) === 'stopped' : dataDirOwner(dataDir) === undefined)
    throw new UserError(notRunning(dataDir));
  if (isHidden) throw new NeedsRootError();
}

export const removedCopy = (copy: string | undefined): string | undefined =>
  copy === undefined || existsSync(copy)
    ? undefined
    : `${copy} is removed: type 'unset KUBECONFIG' where the variable names this file`;

/** Copies the kubeconfig for the user of sudo, if any, and returns the kubeconfig to use. Throws a UserError if the copy fails. */
export function grantKubeconfig(dataDir: string): UsableKubeconfig {
  const user = invokingUser(process.env);
  if (user === undefined) return { path: kubeconfigPath(dataDir), unknown: unknownInvoker(process.env) };
  try {
    return { path: copyKubeconfigFor(dataDir, user), user };
  } catch (error) {
    throw new UserError(`the kubeconfig for ${user.name} cannot be written: ${(error as Error).message}`);
  }
}

/** Returns sentences about who can use the kubeconfig; none for root. `isShown`: whether the user sees the shell command below them. */
export function kubeconfigNotes({ path, user, without, unknown }: UsableKubeconfig, isShown: boolean): string[] {
  if (unknown !== undefined)
    return [
      `warning: only root can use this kubeconfig, because this machine does not know the user of ${unknown}, who has typed the command`,
    ];
  if (without !== undefined) {
    const { engine } = hintsFor({ dataDir: dirname(path) }, process.env, undefined, true);
    return [
      `warning: only root can use this kubeconfig, because no copy for ${without.name} could be written: '${engine('kubeconfig')}' shows why`,
    ];
  }
  if (user === undefined) return [];
  const where = isShown ? 'after this command:' : `in a shell with KUBECONFIG=${shellQuoted(path)}`;
  return [
    `the user ${user.name} can use kubectl and lifepod without sudo, with all rights of an administrator, ${where}`,
  ];
}

export function printKubeconfig(kubeconfig: UsableKubeconfig, say = printError): void {
  // If standard output is not a terminal, a shell probably evaluates the command, and the user does not see it.
  const notes = kubeconfigNotes(kubeconfig, process.stdout.isTTY === true);
  for (const note of notes) say(note);
  // A shell evaluates the line, so the path must not have escapes.
  process.stdout.write(`export KUBECONFIG=${shellQuoted(kubeconfig.path)}\n`);
}
