/** Finds the data folders of the engines that a user may mean, so that messages can name them. */
import { existsSync, realpathSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { dataDirOfCopy, dataDirsOf, invokingUser } from '../../engine/certificates/user-kubeconfigs.ts';
import { engineProcesses, folderOfLock } from '../../engine/data-folder/engine-processes.ts';
import { DEFAULT_DATA_DIR, kubeconfigPath } from '../../engine/settings.ts';
import { realFolder } from '../../platform/files.ts';
import { shellQuoted } from '../../platform/programs/typed-program.ts';
import { listedKubeconfigs } from './kubectl.ts';

/**
 * Returns the data folder of the engine that has written the kubeconfig `paths[0]`, which may be a symbolic link to it; undefined if it is
 * not known, or if there is not exactly one path.
 */
export function dataFolderOf(paths: readonly string[], ofCopy = dataDirOfCopy): string | undefined {
  const [path, ...others] = paths;
  if (path === undefined || others.length > 0) return undefined;
  const real = realFile(path);
  return folderOfFile(path, ofCopy) ?? (real === undefined ? undefined : folderOfFile(real, ofCopy));
}

function folderOfFile(path: string, ofCopy: typeof dataDirOfCopy): string | undefined {
  const folder = dirname(resolve(path));
  const isOwn = resolve(path) === kubeconfigPath(folder) && existsSync(`${folder}/engine.json`);
  return isOwn ? folder : ofCopy(path);
}

function realFile(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    // The file is missing, or this user may not follow the link.
    return undefined;
  }
}

/** Returns the data folders of the engines whose kubeconfig is listed in KUBECONFIG, or was copied for the user who types the command. */
export function foldersOfUser(
  env: NodeJS.ProcessEnv,
  ofCopies = dataDirsOf,
  ownUid = process.geteuid?.() ?? 0,
): string[] {
  const uid = invokingUser(env, undefined, ownUid === 0)?.uid ?? ownUid;
  return [...new Set([...listedKubeconfigs(env).flatMap((path) => dataFolderOf([path]) ?? []), ...ofCopies(uid)])];
}

/**
 * Returns the folders of foldersOfUser(), and for root, who can read each kubeconfig, also the folders of the running engines. Finds these
 * by the locks that processes have open, because every user can choose the command line of a process, and prepare the folder that it names.
 */
export function readableFolders(
  env: NodeJS.ProcessEnv,
  ofUser = foldersOfUser,
  isRoot = process.geteuid?.() === 0,
  running = engineProcesses,
  folderOf = folderOfLock,
): string[] {
  const found = isRoot ? running().flatMap(({ pid }) => folderOf(pid) ?? []) : [];
  return [...new Set([...ofUser(env), ...found])];
}

/**
 * Returns a phrase with the --data-dir options of readableFolders(), for a command that finds no engine in the default data folder;
 * undefined if there are none, or if `dataDir` is another folder.
 */
export function otherFolders(dataDir: string, env: NodeJS.ProcessEnv, folders = readableFolders): string | undefined {
  if (dataDir !== DEFAULT_DATA_DIR && dataDir !== realFolder(DEFAULT_DATA_DIR)) return undefined;
  const others = folders(env).filter((folder) => folder !== dataDir);
  if (others.length === 0) return undefined;
  const options = others.map((folder) => `'--data-dir ${shellQuoted(folder)}'`);
  return `add ${options.join(' or ')} to use another engine`;
}

/** Returns the phrase of otherFolders() after a semicolon; empty if there is none. */
export function orOtherFolder(
  dataDir: string,
  env: NodeJS.ProcessEnv = process.env,
  folders = readableFolders,
): string {
  const other = otherFolders(dataDir, env, folders);
  return other === undefined ? '' : `; ${other}`;
}
