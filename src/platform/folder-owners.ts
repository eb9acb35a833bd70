/**
 * Decides whether another user could use a data folder to become root: root runs what the folder contains, such as static Pods, and writes
 * to files in it. A user could prepare a folder, or a symbolic link to one, and wait for root to use it.
 *
 * Each function returns a sentence for the user (redirectingUser(): a UID), or undefined if nothing is wrong or this process does not have
 * root's rights.
 */
import { lstatSync, readdirSync, readlinkSync, type Stats, statSync } from 'node:fs';
import { dirname, join, resolve, sep } from 'node:path';
import { asRoot } from './programs/typed-program.ts';
import { userName } from './programs/user-name.ts';

const ROOT = 0;
const WRITABLE_BY_ALL = 0o002;
const STICKY = 0o1000;
/** The kernel refuses paths with more symbolic links. Source: path_resolution(7). */
const MAX_LINKS = 40;
const MAX_NAMED = 5;

const isRoot = (): boolean => process.geteuid?.() === ROOT;

const statOf = (path: string): Stats | undefined => lstatSync(path, { throwIfNoEntry: false });

const quoted = (path: string): string => (/^[\w./@:+-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);

/** Checks whether another user owns the folder or a link at the path. Returns undefined if the folder is missing. */
export function foreignFolder(path: string): string | undefined {
  if (!isRoot()) return undefined;
  const owner = [statOf(path), statSync(path, { throwIfNoEntry: false })].find(
    (found) => (found?.uid ?? ROOT) !== ROOT,
  );
  return owner === undefined ? undefined : foreign(`the data folder ${path}`, owner.uid, [path]);
}

/** Like foreignFolder(), but also checks the owners of the direct entries. Does not check deeper entries. */
export function foreignContent(path: string): string | undefined {
  const folder = foreignFolder(path);
  if (folder !== undefined || !isRoot() || statOf(path)?.isDirectory() !== true) return folder;
  const entries = readdirSync(path).flatMap((name) => {
    const uid = statOf(join(path, name))?.uid ?? ROOT;
    return uid === ROOT ? [] : [{ path: join(path, name), uid }];
  });
  const [first] = entries;
  if (first === undefined) return undefined;
  return foreign(
    first.path,
    first.uid,
    entries.map((entry) => entry.path),
  );
}

function foreign(what: string, uid: number, paths: readonly string[]): string {
  const named = paths.slice(0, MAX_NAMED).map(quoted).join(' ');
  return (
    `${what} belongs to the user ${userName(uid)}, who could become root through it: choose another --data-dir, or, if you trust its content, ` +
    `run: ${asRoot(`chown -h root: ${named}`, process.env)}`
  );
}

/** Checks whether the path passes through a symbolic link of another user, who could redirect root. */
export function foreignLink(path: string): string | undefined {
  const link = isRoot() ? linkIn(resolve(path), 0) : undefined;
  if (link === undefined) return undefined;
  return `the symbolic link ${link.path} belongs to the user ${userName(link.uid)}, who could redirect it: give the path to which it leads`;
}

/**
 * Returns the UID of another user who owns a folder above the file, or a link in its path. This user can redirect root to another folder.
 */
export function redirectingUser(path: string): number | undefined {
  if (!isRoot()) return undefined;
  // The owner of any folder on the path, also on the path of a link, can replace the entries of that folder.
  let uid: number | undefined;
  const found = linkIn(dirname(resolve(path)), 0, (folder) => {
    uid ??= folder.uid === ROOT ? undefined : folder.uid;
  });
  return found?.uid ?? uid;
}

interface Link {
  path: string;
  uid: number;
}

/** Returns the first link of another user in the path; undefined if none is found. Calls `passes` for each folder on the path. */
function linkIn(path: string, links: number, passes: (folder: Stats) => void = () => undefined): Link | undefined {
  const names = path.split(sep).slice(1);
  let folder: string = sep;
  for (const [index, name] of names.entries()) {
    const next = join(folder, name);
    const found = statOf(next);
    if (found === undefined) return undefined;
    if (found.isSymbolicLink()) {
      if (found.uid !== ROOT) return { path: next, uid: found.uid };
      if (links === MAX_LINKS) return undefined;
      return linkIn(resolve(folder, readlinkSync(next), ...names.slice(index + 1)), links + 1, passes);
    }
    passes(found);
    folder = next;
  }
  return undefined;
}

/**
 * Returns a warning if a user other than `trusted` can replace the folder, because of the rights of a parent. This is not an error, because
 * working folders of build systems usually belong to another user.
 */
export function replaceableBy(path: string, trusted?: number): string | undefined {
  if (!isRoot()) return undefined;
  const advice = 'choose a --data-dir whose parent folders only root can change';
  for (let parent = dirname(path); ; parent = dirname(parent)) {
    const { uid, mode } = statOf(parent) ?? { uid: ROOT, mode: 0 };
    if (uid !== ROOT && uid !== trusted)
      return `the user ${userName(uid)}, who owns ${parent}, can replace the data folder ${path}, and so become root: ${advice}`;
    if ((mode & WRITABLE_BY_ALL) !== 0 && (mode & STICKY) === 0)
      return `all users can write to ${parent}, and so replace the data folder ${path} and become root: ${advice}, or run: ${asRoot(`chmod +t ${quoted(parent)}`, process.env)}`;
    if (parent === dirname(parent)) return undefined;
  }
}
