/** Writes a file that only its owner can read, in a folder that may belong to any user. */
import { closeSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { UserError } from '../../platform/files.ts';

export interface Owner {
  uid: number;
  gid: number;
  name: string;
}

/**
 * Creates the file with the mode 0600. With `owner`, root creates it with the rights of this user only, so that nothing in the user's folders,
 * such as a symbolic link, can redirect root to another file. Throws a UserError if the file exists or cannot be created.
 */
export function writePrivateFile(path: string, content: string, owner?: Owner): void {
  if (owner === undefined) createFile(path, content, '');
  else asUser(owner, () => createFile(path, content, ` as ${owner.name}`));
}

/** Calls `run` with the rights of the user. They apply to the whole process, so `run` must not return a promise. */
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
    throw new UserError(`the file ${path} cannot be created${by}: ${adviceFor(error as NodeJS.ErrnoException)}`);
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

const adviceFor = ({ code = '', message }: NodeJS.ErrnoException): string =>
  ADVICE[code] ?? `${message}; give another --output`;
