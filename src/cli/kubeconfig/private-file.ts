/** Writes a file that only its owner can read, in a folder that may belong to any user. */
import { closeSync, openSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findUser } from '../../engine/certificates/user-kubeconfigs.ts';
import { UserError } from '../../platform/files.ts';
import { redirectingUser } from '../../platform/folder-owners.ts';
import { userName } from '../../platform/programs/user-name.ts';

export interface Owner {
  uid: number;
  gid: number;
  name: string;
}

const NUMERIC = /^(\d{1,10})(?::(\d{1,10}))?$/;
/** The largest ID; the next number means "no change" in system calls. Source: chown(2). */
const MAX_ID = 0xff_ff_ff_fe;

/**
 * Returns the user for a login name, a UID or UID:GID. A UID of a container or a directory service may have no entry on this machine; its
 * group then has the same number by default. Throws a UserError if there is no such user.
 */
export function ownerNamed(text: string, find = findUser): Owner {
  const [, uid = '', gid] = NUMERIC.exec(text) ?? [];
  const found = find(uid || text);
  if (uid === '' && found !== undefined) return found;
  const ids = { uid: found?.uid ?? Number(uid), gid: gid === undefined ? (found?.gid ?? Number(uid)) : Number(gid) };
  if (uid === '' || ids.uid > MAX_ID || ids.gid > MAX_ID)
    throw new UserError(`--owner ${text} is not a user of this machine: give a login name, a UID or UID:GID`);
  return { ...ids, name: found?.name ?? uid };
}

/**
 * Creates the file with the mode 0600. With `owner`, root creates the file with only the rights of this user, so that nothing in the
 * user's folders, such as a symbolic link, can redirect root to another file. Throws a UserError if the file exists or cannot be created,
 * or if there is no `owner` although another user could redirect root.
 */
export function writePrivateFile(path: string, content: string, owner?: Owner): void {
  if (owner === undefined) {
    const uid = redirectingUser(path);
    if (uid !== undefined)
      throw new UserError(
        `the file ${path} cannot be created: its folder belongs to the user ${userName(uid)}, who could redirect root to another one; add --owner ${uid}, or give another --output`,
      );
    createFile(path, content, '');
  } else asUser(owner, () => createFile(path, content, ` as ${owner.name}`));
}

/** Calls `run` with only the rights of the user. The rights apply to the whole process, so `run` must not return a promise. */
function asUser({ uid, gid }: Owner, run: () => void): void {
  const before = { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0, groups: process.getgroups?.() ?? [] };
  // initgroups(3) would need the user's name, which users of a container may not have.
  process.setgroups?.([gid]);
  process.setegid?.(gid);
  process.seteuid?.(uid);
  try {
    run();
  } finally {
    process.seteuid?.(before.uid);
    process.setegid?.(before.gid);
    process.setgroups?.(before.groups);
  }
}

function createFile(path: string, content: string, by: string): void {
  let fd: number;
  try {
    // The flag x refuses an existing file, and a symbolic link even to a missing one.
    fd = openSync(path, 'wx', 0o600);
  } catch (error) {
    throw new UserError(`the file ${path} cannot be created${by}: ${adviceFor(path, error as NodeJS.ErrnoException)}`);
  }
  try {
    writeFileSync(fd, content);
  } catch (error) {
    rmSync(path, { force: true });
    throw Object.assign(error as Error, { path });
  } finally {
    closeSync(fd);
  }
}

const ADVICE: Readonly<Record<string, string>> = {
  EEXIST: 'it exists already; remove it, or give another --output',
  ENOENT: 'its folder does not exist; create it, or give another --output',
  ENOTDIR: 'its folder is a file; give another --output',
  EACCES: 'the user has no right to write to the folder; give another --output',
};

function adviceFor(path: string, { code = '', message }: NodeJS.ErrnoException): string {
  // Opening a path that ends with a slash fails with EISDIR, even if there is no such folder.
  if (code === 'EISDIR' || (code === 'EEXIST' && statSync(path, { throwIfNoEntry: false })?.isDirectory()))
    return `it is a folder; give the name of a file in it, such as --output ${join(path, 'kubeconfig')}`;
  return ADVICE[code] ?? `${message}; give another --output`;
}
