/**
 * Finds running engines by their command lines, which every user can read: a user who may not read a data folder can learn whether its
 * engine runs, and `lifepod down` finds an engine whose data folder has been deleted. Where the lock of the data folder can be read, the
 * lock decides.
 */
import { readdirSync, readlinkSync, type Stats, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { dataDirOwner, lockPath, realFolder, UserError } from '../../platform/files.ts';
import { type ListedProcess, listProcesses } from '../../platform/processes.ts';
import { isOfRoot, runsAsRoot, sharesPids } from '../../platform/programs/pid-namespace.ts';
import { DEFAULT_DATA_DIR } from '../settings.ts';

/** In a container, omits the processes of other containers. */
const listOwn = (): ListedProcess[] => listProcesses().filter(({ pid }) => sharesPids(pid));

export interface EngineProcess {
  pid: number;
  /** Undefined if the command line has a relative path, and this user may not read the working directory of the process. */
  dataDir: string | undefined;
  /** Set if a part of the path in the command line is a link, which may have had another target when the engine started. */
  isLinked?: true;
}

const MAIN = /\/cli\/main\.[jt]s$/;
/** Options with which the process of `lifepod up` starts an engine in another process. */
const STARTERS = ['--detach', '--install-service'];

export function engineProcesses(
  processes: readonly ListedProcess[] = listOwn(),
  folderOf = workingFolder,
): EngineProcess[] {
  return processes.flatMap(({ pid, args }): EngineProcess[] => {
    const main = args.findIndex((each) => MAIN.test(each));
    if (main === -1 || args[main + 1] !== 'up' || STARTERS.some((option) => args.includes(option))) return [];
    const given = givenValue('--data-dir', args.slice(main + 2)) ?? DEFAULT_DATA_DIR;
    const from = given.startsWith('/') ? '/' : folderOf(pid);
    if (from === undefined) return [{ pid, dataDir: undefined }];
    const dataDir = realFolder(resolve(from, given));
    return [{ pid, dataDir, ...(dataDir !== resolve(from, given) && { isLinked: true }) }];
  });
}

function givenValue(option: string, args: readonly string[]): string | undefined {
  const at = args.findIndex((each) => each === option || each.startsWith(`${option}=`));
  return args[at] === option ? args[at + 1] : args[at]?.slice(option.length + 1);
}

/** Returns the PID of the folder's engine; undefined if none runs, if this user may not read the folder, or if a command has locked it. */
export function visibleOwner(dataDir: string, pidOf = dataDirOwner): number | undefined {
  try {
    return pidOf(dataDir);
  } catch {
    return undefined;
  }
}

/** Returns whether an engine runs in the data folder; `unknown` if this user cannot see all processes or all their data folders. */
export function engineState(
  dataDir: string,
  processes: readonly ListedProcess[] = listOwn(),
  folderOf = workingFolder,
): 'running' | 'stopped' | 'unknown' {
  const found = engineProcesses(processes, folderOf);
  if (found.some((each) => each.dataDir === realFolder(dataDir))) return 'running';
  // The kernel hides the processes of other users if /proc is mounted with hidepid.
  const seesAll = processes.some(({ pid, args }) => pid === 1 && args.join('') !== '');
  return seesAll && found.every((each) => each.dataDir !== undefined) ? 'stopped' : 'unknown';
}

/**
 * Returns those of `pids` that have the deleted lock file of the data folder open, and the engines of movedEngines(). Omits processes with
 * another root folder, such as those of a container, whose paths belong to another file system. Omits processes and files that a user other
 * than root may control: any user can choose the command line of a process, even of a set-user-ID program of root, and the path of a file
 * in a mount namespace. Only root can see the open files of other users' processes.
 */
export function lostEngines(
  dataDir: string,
  pids: readonly number[] = engineProcesses().map(({ pid }) => pid),
): number[] {
  const lock = `${join(dataDir, 'lock')} (deleted)`;
  const deleted = pids.filter((pid) => runsAsRoot(pid) && hasDeletedOpen(pid, lock) && sharesRoot(pid));
  return [...deleted, ...movedEngines(dataDir).map(({ pid }) => pid)];
}

export interface MovedEngine {
  pid: number;
  /** Where the data folder is now. */
  folder: string;
}

/**
 * Returns the engines that were started with the data folder, and whose lock is in another folder now, because the data folder was moved.
 * Omits the same processes and files as lostEngines().
 */
export function movedEngines(dataDir: string, processes = engineProcesses()): MovedEngine[] {
  return processes.flatMap(({ pid, dataDir: given, isLinked }) => {
    if (given !== dataDir || isLinked === true || !runsAsRoot(pid) || !sharesRoot(pid)) return [];
    const folder = folderOfLock(pid);
    return folder === undefined || folder === dataDir ? [] : [{ pid, folder }];
  });
}

/** Returns the folder from which the data folder of the engine `pid` was moved; undefined if it is where the engine was started. */
export function movedFrom(pid: number, processes = engineProcesses()): string | undefined {
  const given = processes.find((each) => each.pid === pid)?.dataDir;
  return given !== undefined && movedEngines(given, processes).some((each) => each.pid === pid) ? given : undefined;
}

function sharesRoot(pid: number): boolean {
  const [own, other] = ['/', `/proc/${pid}/root`].map((path) => {
    try {
      return statSync(path);
    } catch {
      // The process has ended, or belongs to another user.
      return undefined;
    }
  });
  return own !== undefined && own.ino === other?.ino && own.dev === other.dev;
}

/**
 * Throws a UserError if the engine that has locked the data folder runs elsewhere: in a container that has the folder as a volume, or on
 * another machine that has mounted it. `pid`: the PID in the lock file. An unrelated process of this machine may have the same PID, and
 * must not be signaled.
 */
export function requireLocalEngine(dataDir: string, pid: number): void {
  // If another process or none has the lock now, the engine with this PID has just ended.
  if (hasLockOpen(dataDir, pid) || dataDirOwner(dataDir) !== pid) return;
  throw new UserError(
    `the engine of ${dataDir} runs elsewhere, for example in a container that has the folder as a volume: type this command there`,
  );
}

/**
 * Returns whether the process has opened the lock file of the data folder. If this user may not see the open files of the process, returns
 * whether the process is an engine. Returns true if there is no lock file.
 */
export function hasLockOpen(dataDir: string, pid: number): boolean {
  const lock = statSync(lockPath(dataDir), { throwIfNoEntry: false });
  if (lock === undefined) return true;
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).some((fd) => {
      // The process may have closed the file since readdirSync().
      const found = statSync(join(folder, fd), { throwIfNoEntry: false });
      return found?.ino === lock.ino && found.dev === lock.dev;
    });
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    return !isMissing && engineProcesses().some((each) => each.pid === pid);
  }
}

/** `link` is the text with which the kernel refers to the file. */
const hasDeletedOpen = (pid: number, link: string): boolean =>
  // The name of a file that exists may end with "(deleted)".
  openFiles(pid).some(
    (file) => file.link === link && file.nlink === 0 && isOfRoot(file.uid) && isPrivateFile(file.mode),
  );

/** A user can start a set-user-ID program of root with any file that this user can open, but not with a private file of root. */
const isPrivateFile = (mode: number): boolean => (mode & 0o170077) === 0o100000;

/**
 * Returns the data folder whose lock the process has open. Returns undefined if the process has no lock open, if another user owns the lock
 * or may use it, or if this process finds another file at its path. Only root can see the open files of other users' processes.
 */
export function folderOfLock(pid: number): string | undefined {
  const lock = openFiles(pid).find(({ link, uid, mode, ino, dev }) => {
    if (link !== lockPath(dirname(link)) || !isOfRoot(uid) || !isPrivateFile(mode)) return false;
    const found = statSync(link, { throwIfNoEntry: false });
    return found?.ino === ino && found.dev === dev;
  });
  return lock === undefined ? undefined : dirname(lock.link);
}

type OpenFile = { link: string } & Pick<Stats, 'nlink' | 'uid' | 'mode' | 'ino' | 'dev'>;

/** Returns none if the process has ended, or belongs to another user. */
function openFiles(pid: number): OpenFile[] {
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).flatMap((fd) => {
      try {
        const { nlink, uid, mode, ino, dev } = statSync(join(folder, fd));
        return [{ link: readlinkSync(join(folder, fd)), nlink, uid, mode, ino, dev }];
      } catch {
        // The process has closed the file since readdirSync().
        return [];
      }
    });
  } catch {
    return [];
  }
}

function workingFolder(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return undefined;
  }
}
