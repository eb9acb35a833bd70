/**
 * Finds running engines by their command lines. Every user can read these, so that a user who may not read a data folder learns whether its
 * engine runs, and `lifepod down` finds an engine whose data folder has been deleted.
 *
 * Boundary: /proc. The lock of the data folder decides wherever it can be read; this module is for the other cases.
 */
import { readdirSync, readlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { realFolder } from '../../platform/files.ts';
import { type ListedProcess, listProcesses } from '../../platform/processes.ts';
import { sharesPids } from '../../platform/programs/pid-namespace.ts';
import { DEFAULT_DATA_DIR } from '../settings.ts';

/** Lists the processes of this machine, or of this container, without those of the containers on it. */
const listOwn = (): ListedProcess[] => listProcesses().filter(({ pid }) => sharesPids(pid));

export interface EngineProcess {
  pid: number;
  /**
   * The data folder; undefined if the command line has a relative path, and this user may not read the working directory of the process.
   */
  dataDir: string | undefined;
}

/** Matches the program of lifepod in a command line. */
const MAIN = /\/cli\/main\.[jt]s$/;
/** Options with which the process of `lifepod up` starts an engine in another process. */
const STARTERS = ['--detach', '--install-service'];

/** Returns the processes that run an engine. */
export function engineProcesses(
  processes: readonly ListedProcess[] = listOwn(),
  folderOf = workingFolder,
): EngineProcess[] {
  return processes.flatMap(({ pid, args }) => {
    const main = args.findIndex((each) => MAIN.test(each));
    if (main === -1 || args[main + 1] !== 'up' || STARTERS.some((option) => args.includes(option))) return [];
    const given = givenValue('--data-dir', args.slice(main + 2)) ?? DEFAULT_DATA_DIR;
    const from = given.startsWith('/') ? '/' : folderOf(pid);
    return [{ pid, dataDir: from === undefined ? undefined : realFolder(resolve(from, given)) }];
  });
}

function givenValue(option: string, args: readonly string[]): string | undefined {
  const at = args.findIndex((each) => each === option || each.startsWith(`${option}=`));
  return args[at] === option ? args[at + 1] : args[at]?.slice(option.length + 1);
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
 * Returns the IDs in `pids` whose processes hold the lock of the data folder although the lock file has been deleted, perhaps
 * with the folder. Only root can see the open files of other users' processes.
 */
export function lostEngines(
  dataDir: string,
  pids: readonly number[] = engineProcesses().map(({ pid }) => pid),
): number[] {
  const lock = `${join(dataDir, 'lock')} (deleted)`;
  return pids.filter((pid) => openFiles(pid).includes(lock));
}

function openFiles(pid: number): string[] {
  const folder = `/proc/${pid}/fd`;
  const linkOf = (fd: string): string[] => {
    try {
      return [readlinkSync(join(folder, fd))];
    } catch {
      // The file has been closed.
      return [];
    }
  };
  try {
    return readdirSync(folder).flatMap(linkOf);
  } catch {
    // The process has ended, or belongs to another user.
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
