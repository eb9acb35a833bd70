/**
 * Replaces all files of a volume at once, so that the volume never contains files of two versions. The files are in a folder whose name
 * contains the time. The link `..data` points to this folder and is replaced atomically. Each name that the user sees is a link into
 * `..data`.
 * Source: pkg/volume/util/atomic_writer of v1.33 (layout).
 */
import { randomBytes } from 'node:crypto';
import {
  chmod,
  chown,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { giveToGroup } from './empty-dir.ts';

export interface PayloadFile {
  data: Uint8Array;
  mode: number;
  uid?: number;
}

/** The files of a volume, by their paths relative to the volume. */
export type Payload = ReadonlyMap<string, PayloadFile>;

const DATA = '..data';
const NEW_DATA = '..data_tmp';
const MAX_PATH_LENGTH = 4096;
const timestamped = /^\.\.\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d\./;

/**
 * Makes the volume `folder` contain exactly these files. Resolves to whether new content was written. `fsGroup`: the group that gets read
 * access to all files. `now`, in milliseconds since the epoch, becomes part of the name of a new folder. Rejects if a path is invalid.
 */
export async function writePayload(folder: string, payload: Payload, now: number, fsGroup?: number): Promise<boolean> {
  for (const path of payload.keys()) checkPath(path);
  await giveToGroup(folder, fsGroup);
  const current = await readlink(join(folder, DATA)).catch(() => undefined);
  const unchanged = current !== undefined && (await containsExactly(join(folder, current), payload, fsGroup));
  const name = unchanged ? current : await writeContent(folder, payload, now, fsGroup);
  // Link the names even if the content is unchanged: an engine may have died after it replaced `..data` and before it linked them.
  await linkNames(folder, namesOf(payload));
  for (const entry of await readdir(folder)) {
    if (timestamped.test(entry) && entry !== name) await rm(join(folder, entry), { recursive: true, force: true });
  }
  return !unchanged;
}

export interface KeptFile extends Omit<PayloadFile, 'data'> {
  size: number;
  read(): Promise<Uint8Array>;
}

/**
 * Completes the links to the current files of a volume whose update has failed. Resolves to the current files by their paths relative to
 * the volume; undefined if no files were ever written.
 */
export async function keepPayload(folder: string): Promise<Map<string, KeptFile> | undefined> {
  const names = await readdir(join(folder, DATA)).catch(() => undefined);
  if (names === undefined) return undefined;
  await linkNames(folder, new Set(names));
  const data = await realpath(join(folder, DATA));
  const files = new Map<string, KeptFile>();
  for (const entry of await readdir(data, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const { mode, uid, size } = await lstat(path);
    files.set(relative(data, path), { mode: mode & 0o7777, uid, size, read: () => readFile(path) });
  }
  return files;
}

const namesOf = (payload: Payload): Set<string> =>
  new Set([...payload.keys()].map((path) => path.split('/')[0] as string));

async function writeContent(folder: string, payload: Payload, now: number, fsGroup?: number): Promise<string> {
  const name = `..${timeText(now)}.${randomBytes(5).readUIntBE(0, 5)}`;
  await writeFolder(join(folder, name), payload, fsGroup).catch(async (error: Error) => {
    await rm(join(folder, name), { recursive: true, force: true });
    throw error;
  });
  await rm(join(folder, NEW_DATA), { force: true });
  await symlink(name, join(folder, NEW_DATA));
  await rename(join(folder, NEW_DATA), join(folder, DATA));
  return name;
}

function checkPath(path: string): void {
  if (path === '') throw new Error('invalid path: must not be empty');
  if (path.startsWith('/')) throw new Error(`invalid path: must be relative path: ${path}`);
  if (path.length > MAX_PATH_LENGTH) {
    throw new Error(`invalid path: must be less than or equal to ${MAX_PATH_LENGTH} characters`);
  }
  const parts = path.split('/');
  if (parts.includes('..')) throw new Error(`invalid path: must not contain '..': ${path}`);
  if (path.startsWith('..')) throw new Error(`invalid path: must not start with '..': ${path}`);
}

/** Returns the UTC time in the form 2026_01_31_09_30_00. */
const timeText = (now: number): string => new Date(now).toISOString().slice(0, 19).replace(/[-T:]/g, '_');

const READ_BY_GROUP = 0o440;
const ENTER_BY_GROUP = 0o550;
const SET_GID = 0o2000;
const fileMode = (file: PayloadFile, fsGroup: number | undefined): number =>
  fsGroup === undefined ? file.mode : file.mode | READ_BY_GROUP;

async function writeFolder(folder: string, payload: Payload, fsGroup: number | undefined): Promise<void> {
  const makeFolder = async (path: string): Promise<void> => {
    await mkdir(path, { recursive: true });
    await chmod(path, fsGroup === undefined ? 0o755 : 0o755 | ENTER_BY_GROUP | SET_GID);
    if (fsGroup !== undefined) await chown(path, 0, fsGroup);
  };
  await makeFolder(folder);
  for (const [path, file] of payload) {
    let parent = folder;
    for (const part of dirname(path).split('/')) {
      if (part === '.' || part === '') continue;
      parent = join(parent, part);
      await makeFolder(parent);
    }
    const target = join(folder, path);
    await writeFile(target, file.data, { mode: 0o600, flag: 'wx' });
    if (fsGroup !== undefined || file.uid !== undefined) await chown(target, file.uid ?? 0, fsGroup ?? 0);
    await chmod(target, fileMode(file, fsGroup));
  }
}

async function containsExactly(folder: string, payload: Payload, fsGroup: number | undefined): Promise<boolean> {
  try {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => !entry.isDirectory());
    if (files.length !== payload.size) return false;
    for (const [path, file] of payload) {
      const target = join(folder, path);
      const stat = await lstat(target);
      if (!stat.isFile() || (stat.mode & 0o7777) !== fileMode(file, fsGroup)) return false;
      if (stat.uid !== (file.uid ?? 0) || stat.gid !== (fsGroup ?? 0)) return false;
      if (!(await readFile(target)).equals(file.data)) return false;
    }
    return true;
  } catch {
    return false;
  }
}

async function linkNames(folder: string, names: ReadonlySet<string>): Promise<void> {
  const present = new Set(await readdir(folder));
  for (const name of names) if (!present.has(name)) await symlink(join(DATA, name), join(folder, name));
  for (const name of present) {
    if (!name.startsWith('..') && !names.has(name)) await rm(join(folder, name), { recursive: true, force: true });
  }
}
