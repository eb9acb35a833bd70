/**
 * Writes kubeconfigs for the users who start lifepod with sudo. Only root can read the kubeconfig in the data folder, so each of these
 * users gets a copy that only this user and root can read. The copy has the rights of the administrator, which the user has anyway, through
 * sudo.
 *
 * Reads the administrator's kubeconfig, and writes /run/lifepod/HASH/UID.kubeconfig, where HASH is a hash of the data folder's path. The
 * file data-dir beside the copies contains the path, so that commands of a user who may not read the data folder can name it.
 * Invariants:
 *  1. The folders belong to root, and no other user may write to them. No other user can thus have placed a file or symbolic link there.
 *  2. A copy has the mode 0600 before it has any content, and its owner before it has its name. It replaces the earlier file, which the
 *     user may have changed or linked.
 *  3. Only `lifepod up` and `lifepod kubeconfig` create a copy. The engine rewrites existing copies when it renews the certificate.
 *     `lifepod down`, and an engine that shuts down its node, remove the copies.
 *  4. The path in data-dir is used only if no other user can have written it. dataDirOfCopy() also requires that its hash is the name of
 *     the folder.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { realFolder } from '../../platform/files.ts';
import { namingFile } from '../../platform/folders/written-file.ts';
import type { Log } from '../../platform/platform.ts';
import { kubeconfigPath } from '../settings.ts';

const RUN_FOLDER = '/run/lifepod';
const FILE_NAME = /^([1-9]\d*)\.kubeconfig$/;
const DATA_DIR_FILE = 'data-dir';
const ROOT = 0;

export interface InvokingUser {
  uid: number;
  gid: number;
  /** The login name, or the UID as text. */
  name: string;
}

export type FindUser = (reference: string) => InvokingUser | undefined;

/** Finds a user with getent(1), which also knows the users of directory services. Returns undefined if there is no such user. */
export function findUser(reference: string): InvokingUser | undefined {
  const { status, stdout } = spawnSync('getent', ['passwd', '--', reference], { encoding: 'utf8' });
  const [name, , uid, gid] = status === 0 ? stdout.trimEnd().split(':') : [];
  if (!uid || !gid) return undefined;
  return { uid: Number(uid), gid: Number(gid), name: name || uid };
}

/**
 * Returns the user who runs this process as root through sudo, doas or pkexec; undefined if there is none, if the user is root, or if
 * `find` does not know the user. These programs set the variables themselves, whatever the user's environment contains. A process of
 * another user, as with `sudo -u`, acts only for that user.
 */
export function invokingUser(
  env: NodeJS.ProcessEnv,
  find: FindUser = findUser,
  isRoot = process.geteuid?.() === ROOT,
): InvokingUser | undefined {
  if (!isRoot) return undefined;
  const { SUDO_UID: uid, SUDO_GID: gid, SUDO_USER: name } = env;
  if (uid !== undefined) {
    if (!/^[1-9]\d{0,9}$/.test(uid)) return undefined;
    return /^\d{1,10}$/.test(gid ?? '') ? { uid: Number(uid), gid: Number(gid), name: name || uid } : find(uid);
  }
  const reference = env['DOAS_USER'] ?? env['PKEXEC_UID'];
  const found = reference === undefined ? undefined : find(reference);
  return found?.uid === 0 ? undefined : found;
}

function folderOf(dataDir: string, runFolder: string): string {
  return join(runFolder, createHash('sha256').update(realFolder(dataDir)).digest('hex').slice(0, 8));
}

/** Returns the path of a user's copy, whether the file exists or not. */
export const userKubeconfigPath = (dataDir: string, uid: number, runFolder = RUN_FOLDER): string =>
  join(folderOf(dataDir, runFolder), `${uid}.kubeconfig`);

/** Returns undefined if the user who runs this process through sudo, doas or pkexec has no copy. */
export function copyOfInvoker(dataDir: string, env: NodeJS.ProcessEnv): string | undefined {
  const user = invokingUser(env);
  const path = user === undefined ? undefined : userKubeconfigPath(dataDir, user.uid);
  return path !== undefined && existsSync(path) ? path : undefined;
}

/** Throws if the folder is not safe, or if the file cannot be written. */
export function copyKubeconfigFor(
  dataDir: string,
  { uid, gid }: Pick<InvokingUser, 'uid' | 'gid'>,
  runFolder = RUN_FOLDER,
): string {
  const content = readFileSync(kubeconfigPath(dataDir));
  const folder = folderOf(dataDir, runFolder);
  const path = userKubeconfigPath(dataDir, uid, runFolder);
  ensureSafeFolder(runFolder);
  ensureSafeFolder(folder);
  replaceFile(join(folder, DATA_DIR_FILE), `${realFolder(dataDir)}\n`, 0o644);
  replaceFile(path, content, 0o600, { uid, gid });
  return path;
}

function replaceFile(path: string, content: Buffer | string, mode: number, owner?: { uid: number; gid: number }): void {
  const temporary = `${path}.new`;
  rmSync(temporary, { force: true });
  const fd = openSync(temporary, 'wx', 0o600);
  try {
    if (owner !== undefined) fchownSync(fd, owner.uid, owner.gid);
    fchmodSync(fd, mode);
    namingFile(path, () => writeFileSync(fd, content));
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(temporary, path);
}

/**
 * Returns the data folder of the engine that has written the copy at `path`; undefined if `path` is not the path of a copy, or if the file
 * data-dir beside the copy is missing or could have been written by a user other than `owner`.
 */
export function dataDirOfCopy(path: string, runFolder = RUN_FOLDER, owner = ROOT): string | undefined {
  const folder = dirname(resolve(path));
  if (dirname(folder) !== runFolder || !FILE_NAME.test(basename(path))) return undefined;
  const dataDir = readOwned(join(folder, DATA_DIR_FILE), owner)?.replace(/\n$/, '');
  return dataDir !== undefined && folderOf(dataDir, runFolder) === folder ? dataDir : undefined;
}

/** Returns the data folders of the engines that have written a copy for the user. */
export const dataDirsOf = (uid: number, runFolder = RUN_FOLDER, owner = ROOT): string[] =>
  namesIn(runFolder)
    .map((name) => join(runFolder, name, `${uid}.kubeconfig`))
    .filter((path) => existsSync(path))
    .flatMap((path) => dataDirOfCopy(path, runFolder, owner) ?? []);

/** Returns the data folders of the engines that have written a copy for any user. */
export const knownDataDirs = (runFolder = RUN_FOLDER, owner = ROOT): string[] =>
  namesIn(runFolder).flatMap(
    (name) => readOwned(join(runFolder, name, DATA_DIR_FILE), owner)?.replace(/\n$/, '') ?? [],
  );

/** Returns undefined if the file cannot be read, or if a user other than `owner` may write it. */
function readOwned(path: string, owner: number): string | undefined {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
  try {
    const found = fstatSync(fd);
    const isTrusted = found.isFile() && found.uid === owner && (found.mode & 0o022) === 0;
    return isTrusted ? readFileSync(fd, 'utf8') : undefined;
  } finally {
    closeSync(fd);
  }
}

/** Throws if the path is not a folder, or if other users may change the folder. */
function ensureSafeFolder(path: string): void {
  try {
    mkdirSync(path, 0o755);
    // The umask may have removed rights.
    chmodSync(path, 0o755);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const found = lstatSync(path);
  if (!found.isDirectory() || found.uid !== process.geteuid?.() || (found.mode & 0o022) !== 0)
    throw new Error(`${path} is not a folder that only root may change: remove it`);
}

/**
 * Writes the copy of `user`, and rewrites the existing copies. Only logs errors, because the engine must start even if a copy cannot be
 * written.
 */
export function copyKubeconfigs(
  dataDir: string,
  user: InvokingUser | undefined,
  log: Log,
  runFolder = RUN_FOLDER,
): void {
  const users = new Map(existingCopies(folderOf(dataDir, runFolder)).map((each) => [each.uid, each]));
  if (user !== undefined) users.set(user.uid, user);
  for (const each of users.values()) {
    try {
      copyKubeconfigFor(dataDir, each, runFolder);
    } catch (error) {
      log.error('cannot write the kubeconfig of a user', { uid: each.uid, error: (error as Error).message });
    }
  }
}

function existingCopies(folder: string): { uid: number; gid: number }[] {
  return namesIn(folder).flatMap((name) => {
    const [, uid] = FILE_NAME.exec(name) ?? [];
    const found = lstatSync(join(folder, name), { throwIfNoEntry: false });
    return uid === undefined || found?.uid !== Number(uid) ? [] : [{ uid: found.uid, gid: found.gid }];
  });
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

export function removeUserKubeconfigs(dataDir: string, runFolder = RUN_FOLDER): void {
  rmSync(folderOf(dataDir, runFolder), { recursive: true, force: true });
  try {
    rmdirSync(runFolder);
  } catch {
    // Another engine uses the folder, or the folder does not exist.
  }
}
