/**
 * Finds what still runs of an engine whose data folder was deleted or moved. Another engine in the folder would end the private containerd
 * of the first one, and the Pods in it, so every start and restore is refused until `lifepod down` has ended them. Only root can learn
 * which files an engine has open, so the functions find nothing for other users.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { UserError } from '../../platform/files.ts';
import type { Timers } from '../../platform/platform.ts';
import { haveEnded } from '../../platform/processes.ts';
import { reinstallFirst, rootCommand } from '../../platform/programs/typed-program.ts';
import { hasProcesses, hasRuntime } from '../leftovers.ts';
import { lostEngines, movedEngines } from './engine-processes.ts';
import { isReplacing } from './replacement.ts';

export interface LostParts {
  /** None if only other processes remain, such as containerd. */
  pids: readonly number[];
  /** Whether Pods may run in a private containerd. */
  hasPods: boolean;
  /** Where the folder is now, if it was moved while its engine ran. */
  movedTo?: string | undefined;
}

export interface LostReaders {
  engines(dataDir: string): readonly number[];
  movedTo?(dataDir: string): string | undefined;
  hasRecord(dataDir: string): boolean;
  hasProcesses(dataDir: string): boolean;
  hasRuntime(dataDir: string): boolean;
}

const OF_ROOT: LostReaders = {
  engines: (dataDir) => lostEngines(dataDir),
  movedTo: (dataDir) => movedEngines(dataDir)[0]?.folder,
  // A restore that was interrupted may have moved the record. A damaged record counts, too, because a restore can replace it.
  hasRecord: (dataDir) => existsSync(join(dataDir, 'engine.json')) || isReplacing(dataDir),
  hasProcesses,
  hasRuntime,
};

/** Returns undefined if nothing runs. */
export function findLost(
  dataDir: string,
  readers: LostReaders | undefined = process.geteuid?.() === 0 ? OF_ROOT : undefined,
): LostParts | undefined {
  if (readers === undefined) return undefined;
  const pids = readers.engines(dataDir);
  if (pids.length === 0) {
    // A first start writes its record before it starts a process, and removes the record last if it fails. Each state is therefore read
    // twice: the processes of a first start that begins or fails meanwhile are not those of a deleted folder.
    const isLeft = (): boolean => !readers.hasRecord(dataDir) && readers.hasProcesses(dataDir);
    if (!isLeft() || !isLeft()) return undefined;
  }
  return { pids, hasPods: readers.hasRuntime(dataDir), movedTo: readers.movedTo?.(dataDir) };
}

export const lostWords = ({ pids, hasPods }: LostParts): string =>
  (pids.length === 0 ? 'what it has left' : `the engine (PID ${pids.join(', ')})`) +
  (hasPods ? ', and its Pods without their grace periods' : '');

/** Returns a clause that says what happened to the folder. */
export const lossText = (dataDir: string, { pids, movedTo }: Omit<LostParts, 'hasPods'>): string =>
  `the data folder ${dataDir} was ${movedTo === undefined ? 'deleted' : `moved to ${movedTo}`} ` +
  (pids.length === 0 ? 'or moved while processes of its engine ran' : 'while its engine ran');

/** Returns undefined if nothing of the engine runs. */
export function lostText(dataDir: string, lost = findLost(dataDir)): string | undefined {
  if (lost === undefined) return undefined;
  const back = lost.movedTo === undefined ? '' : 'move it back, or ';
  return `${lossText(dataDir, lost)}: ${back}'${rootCommand('down', dataDir)}' ends ${lostWords(lost)}${reinstallFirst(process.env)}`;
}

/** A first start that has failed removes its lock, and then exits within this time. */
const EXIT_MILLIS = 2_000;

/** Rejects with a UserError if findLost() finds an engine that does not exit soon, or finds only other processes. */
export async function refuseLost(dataDir: string, timers: Timers, find = findLost): Promise<void> {
  const lost = find(dataDir);
  if (lost === undefined) return;
  if (lost.pids.length > 0 && (await haveEnded([...lost.pids], EXIT_MILLIS, timers)))
    return refuseLost(dataDir, timers, find);
  throw new UserError(lostText(dataDir, lost));
}
