/** Functions for files and folders, mainly for the data folder and its lock. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { foreignContent, foreignFolder, foreignLink } from './folder-owners.ts';
import { createFolders, creationProblem, isOtherThanFolder } from './folders/folders.ts';
import { namingFile, overwriteLine, syncFolder } from './folders/written-file.ts';
import { missingProgram } from './programs/packages.ts';

/** An error that a user of the command line can fix. The user sees only the message, which explains the cause and, if known, the fix. */
export class UserError extends Error {
  override readonly name = 'UserError';
}

export class FolderInUseError extends UserError {
  readonly dataDir: string;
  readonly pid: number | undefined;

  constructor(dataDir: string, pid: number | undefined) {
    super(
      `the data folder ${dataDir} is in use by a running lifepod (PID ${pid ?? 'unknown'}): choose another --data-dir`,
    );
    this.dataDir = dataDir;
    this.pid = pid;
  }
}

/** The error about a data folder that belongs to another user. failureText() replaces the message if the folder is not one of lifepod. */
export class ForeignFolderError extends UserError {
  readonly dataDir: string;

  constructor(dataDir: string, message: string) {
    super(message);
    this.dataDir = dataDir;
  }
}

const hasCode = (error: unknown, code: string): boolean => (error as NodeJS.ErrnoException).code === code;

/**
 * Returns the absolute path of a folder with all symbolic links resolved, except links to missing targets. The folder need not exist. If
 * the links cannot be resolved, for example because a parent is not a folder, the result has the links.
 */
export function realFolder(path: string): string {
  const full = resolve(path);
  try {
    return realpathSync(full);
  } catch (error) {
    const parent = dirname(full);
    return hasCode(error, 'ENOENT') && parent !== full ? join(realFolder(parent), basename(full)) : full;
  }
}

/** Like givenDataDir(), but also throws a UserError if a link in the path lets another user redirect root. */
export function realDataDir(path: string): string {
  if (path === '' || isOtherThanFolder(path)) throw notAFolder(path);
  const reason = foreignLink(path);
  if (reason !== undefined) throw new UserError(reason);
  return realFolder(path);
}

/**
 * Returns realFolder() of the data folder given by the user. Throws a UserError if the path is empty or leads to something other than a
 * folder.
 */
export function givenDataDir(path: string): string {
  if (path === '' || isOtherThanFolder(path)) throw notAFolder(path);
  return realFolder(path);
}

const EMPTY_FOLDER = '--data-dir is empty: give a folder, such as /var/lib/lifepod';
const notAFolder = (path: string): UserError =>
  new UserError(path === '' ? EMPTY_FOLDER : `${path} is not a folder: choose another --data-dir`);

/** Creates the folder and its missing parents with mode 0700. Sets the mode of an existing folder to 0700. */
export function ensurePrivateFolder(path: string): void {
  createFolders(path);
  chmodSync(path, 0o700);
}

/**
 * Like ensurePrivateFolder(), for the user's data folder. Returns the created folders, for removeFolders(). Throws a UserError if this
 * fails, or if the folder or an entry of it belongs to another user.
 */
export function ensureDataDir(path: string): string[] {
  try {
    const created = createFolders(path);
    refuseForeign(path, foreignFolder);
    chmodSync(path, 0o700);
    // Before chmodSync(), other users could add entries.
    refuseForeign(path, foreignContent);
    return created;
  } catch (error) {
    if (error instanceof UserError) throw error;
    if (hasCode(error, 'EEXIST') || hasCode(error, 'ENOTDIR')) throw notAFolder(path);
    throw new UserError(
      `the data folder ${path} cannot be created (${creationProblem(error)}): choose another --data-dir`,
    );
  }
}

function refuseForeign(dataDir: string, check: typeof foreignFolder): void {
  const reason = check(dataDir);
  if (reason !== undefined) throw new ForeignFolderError(dataDir, reason);
}

/**
 * Replaces the file atomically and durably: a reader sees either the old or the new content, even after a crash. A file that already has
 * the content and the mode is not rewritten, so that the call succeeds even on a full disk.
 */
export function writeFileAtomic(path: string, content: string | Uint8Array, mode = 0o600): void {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  if (!hasContent(path, bytes, mode)) replaceFile(path, bytes, mode);
  // Sync even without a new file, because an earlier writer may have been killed before its sync.
  syncFolder(dirname(path));
}

function hasContent(path: string, bytes: Uint8Array, mode: number): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (!found?.isFile() || found.size !== bytes.length || (found.mode & 0o7777) !== mode) return false;
  return readFileSync(path).equals(bytes);
}

function replaceFile(path: string, bytes: Uint8Array, mode: number): void {
  const temporary = `${path}.${process.pid}.new`;
  try {
    const fd = openSync(temporary, 'w', mode);
    try {
      for (let written = 0; written < bytes.length; ) written += writeSync(fd, bytes, written);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    chmodSync(temporary, mode);
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw Object.assign(error as Error, { path });
  }
}

/** Returns undefined if the file does not exist. */
export function readTextIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR')) return undefined;
    throw error;
  }
}

export interface DataDirLock {
  release(): void;
}

/** The owner of the data folder locks this file. The file has one line: see src/engine/data-folder/lock-line.ts. */
export const lockPath = (dataDir: string): string => join(dataDir, 'lock');

/**
 * Runs the flock command on this process's open file, and returns whether the lock was acquired. A lock of flock(2) belongs to the open
 * file description, so it outlives the command. The kernel releases the lock when this process ends, even by kill -9. Node.js opens files
 * with O_CLOEXEC, so child processes do not keep the lock. Throws a UserError if the flock command is not installed.
 */
export function tryFlock(fd: number, ...how: string[]): boolean {
  const result = spawnSync('flock', [...how, '3'], { stdio: ['ignore', 'ignore', 'pipe', fd] });
  if (result.error !== undefined && hasCode(result.error, 'ENOENT')) throw new UserError(missingProgram('flock'));
  if (result.error !== undefined) throw result.error;
  if (result.status === 0) return true;
  if (result.status === 1) return false;
  // A signal killed the command: for example, Ctrl+C on a terminal also reaches the command. lifepod handles SIGINT itself, so try again.
  if (result.signal !== null) return tryFlock(fd, ...how);
  throw new Error(`flock failed: ${result.stderr.toString().trim()}`);
}

/** By role: the subject and the rest of the sentence `SUBJECT is REST FOLDER`. A session that ends also has the role `down`. */
const LOCKING_COMMANDS = {
  down: ['lifepod', 'cleaning up after the engine of'],
  backup: ["'lifepod backup'", 'copying the data folder'],
  restore: ["'lifepod restore'", 'replacing the content of'],
} as const;

/** session: an engine that a session has started and that the last session stops. The other roles except `engine` are commands. */
export type DataDirRole = 'engine' | 'session' | keyof typeof LOCKING_COMMANDS;

const isCommand = (role: string | undefined): role is keyof typeof LOCKING_COMMANDS =>
  role !== undefined && Object.hasOwn(LOCKING_COMMANDS, role);

/** How long lockDataDir() waits for shared locks. Other processes hold these briefly in dataDirOwner() and dataDirReleased(). */
const SHARED_LOCK_SECONDS = 1;

/**
 * Locks the data folder until release() or until this process ends, even by kill -9. Throws a UserError if another process still has the
 * lock after 1 s, if the flock command is not installed, or if another user could have prepared the folder.
 */
export function lockDataDir(dataDir: string, role: DataDirRole | `${DataDirRole} starting` = 'engine'): DataDirLock {
  refuseForeign(dataDir, foreignContent);
  const fd = openSync(lockPath(dataDir), constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  if (!fstatSync(fd).isFile()) {
    closeSync(fd);
    throw new UserError(`${lockPath(dataDir)} is not a regular file: remove it`);
  }
  if (!tryFlock(fd, '--exclusive', '--wait', String(SHARED_LOCK_SECONDS))) {
    closeSync(fd);
    throw inUse(dataDir, readOwner(dataDir));
  }
  // A first start that has failed removes the file, and another process may have created it again.
  if (fstatSync(fd).ino !== statSync(lockPath(dataDir), { throwIfNoEntry: false })?.ino) {
    closeSync(fd);
    ensureDataDir(dataDir);
    return lockDataDir(dataDir, role);
  }
  namingFile(lockPath(dataDir), () => overwriteLine(fd, `${process.pid} ${role}`));
  return {
    release() {
      // Otherwise, this process would be taken for the next owner until that one has written its PID.
      overwriteLine(fd, '');
      closeSync(fd);
    },
  };
}

interface Owner {
  pid?: number;
  role: DataDirRole;
}

function readOwner(dataDir: string): Owner {
  const [text = '', role] = readTextIfPresent(lockPath(dataDir))?.split(/\s/) ?? [];
  const pid = Number(text);
  return {
    pid: Number.isInteger(pid) && pid > 0 ? pid : undefined,
    role: role === 'session' || isCommand(role) ? role : 'engine',
  };
}

function inUse(dataDir: string, { pid, role }: Owner): UserError {
  if (!isCommand(role)) return new FolderInUseError(dataDir, pid);
  const [program, does] = LOCKING_COMMANDS[role];
  return new UserError(`${program} (PID ${pid ?? 'unknown'}) is ${does} ${dataDir}: wait until it has finished`);
}

/**
 * Returns the PID of the engine that has locked the data folder; undefined if no process has locked it, or if the lock file contains no PID
 * yet, or is a named pipe. Throws a UserError if a command, such as `lifepod down`, has locked the folder, or if the flock command is not
 * installed. Also throws one if the folder belongs to another user, who may have written the PID.
 */
export function dataDirOwner(dataDir: string): number | undefined {
  refuseForeign(dataDir, foreignFolder);
  let fd: number;
  try {
    fd = openSync(lockPath(dataDir), constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR')) return undefined;
    throw error;
  }
  try {
    if (tryFlock(fd, '--shared', '--nonblock')) return undefined;
  } finally {
    closeSync(fd);
  }
  const owner = readOwner(dataDir);
  if (isCommand(owner.role)) throw inUse(dataDir, owner);
  return owner.pid;
}

/** Returns whether a session has started the engine that has locked the data folder. Call this only while an engine has the lock. */
export const isSessionEngine = (dataDir: string): boolean => readOwner(dataDir).role === 'session';

/**
 * Resolves when no engine and no command has locked the data folder. Does not poll: flock waits in the kernel. Rejects if `signal` aborts
 * or if flock cannot be run or fails.
 */
export async function dataDirReleased(dataDir: string, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const code = await new Promise<number | null>((resolve, reject) => {
    // The lock is shared, so that a waiting process is not mistaken for an owner. `detached` protects the command from Ctrl+C. setpriv ends
    // the command when this process ends.
    const args = ['--pdeathsig', 'KILL', 'flock', '--shared', lockPath(dataDir), 'true'];
    const child: ChildProcess = spawn('setpriv', args, { stdio: 'ignore', detached: true, signal });
    child.once('error', reject);
    child.once('exit', resolve);
  });
  // Ctrl+C can still kill the command before it has its own process group, so wait again.
  if (code === null) return dataDirReleased(dataDir, signal);
  if (code !== 0) throw new Error(`flock ended with exit code ${code}`);
}
