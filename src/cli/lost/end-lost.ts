/** Ends the processes of an engine whose data folder was deleted (lost-folder.ts), and removes what it has left, for `lifepod down`. */
import { join } from 'node:path';
import { lostEngines, movedEngines, movedFrom } from '../../engine/data-folder/engine-processes.ts';
import { type LostParts, lossText, lostWords } from '../../engine/data-folder/lost-folder.ts';
import { clearMachine, hasProcesses, hasRuntime } from '../../engine/leftovers.ts';
import { UserError } from '../../platform/files.ts';
import { redirectingUser } from '../../platform/folder-owners.ts';
import { nodePlatform, systemTimers } from '../../platform/node-js.ts';
import { untilAborted } from '../../platform/on-abort.ts';
import { haveEnded, sendSignal } from '../../platform/processes.ts';
import { hintsFor } from '../hints.ts';

const MAY_REMAIN =
  "the engine has ended; if it used the machine's own container runtime, containers of its Pods may still run there: 'crictl pods' lists them";

/** Long, because an engine that stops waits for its requests and for containerd. */
const END_MILLIS = 60_000;

/**
 * Ends the engine of the deleted folder, and removes its remains. Resolves with false if there was nothing to end. The Pods end without
 * grace periods and defer containers, because the store was in the data folder. Containers in the machine's own runtime continue to run,
 * because its endpoint was in the data folder, too. Rejects with a UserError if the engine does not end.
 */
export async function endLost(
  dataDir: string,
  say: (line: string) => void,
  signal: AbortSignal,
  hasPods = hasRuntime(dataDir),
  clear = clearMachine,
): Promise<boolean> {
  const pids = lostEngines(dataDir);
  if (pids.length === 0 && !hasProcesses(dataDir)) return false;
  const moved = movedFolders(dataDir);
  sayEnding(dataDir, { pids, hasPods, movedTo: moved[0] }, say);
  await endEngines(dataDir, pids, signal);
  // The mounts of a folder have moved with it.
  for (const folder of [dataDir, ...moved.filter(isStillThere)])
    await untilAborted(signal, clear(folder, nodePlatform('error'), signal));
  say(hasPods ? `nothing from ${dataDir} is running or mounted any more` : MAY_REMAIN);
  return true;
}

/**
 * Ends only the engines whose folder was deleted. Another engine or a restored backup uses the path of the folder now. The caller ends the
 * Pods of that engine, and removes the remains of all engines. Resolves with whether there was an engine to end. Rejects like endLost().
 */
export async function endLostEngines(
  dataDir: string,
  say: (line: string) => void,
  signal: AbortSignal,
  clear = clearMachine,
): Promise<boolean> {
  const pids = lostEngines(dataDir);
  if (pids.length === 0) return false;
  const moved = movedFolders(dataDir);
  sayEnding(dataDir, { pids, hasPods: false, movedTo: moved[0] }, say);
  await endEngines(dataDir, pids, signal);
  for (const folder of moved.filter(isStillThere))
    await untilAborted(signal, clear(folder, nodePlatform('error'), signal));
  // A private containerd that runs may be that of the other engine, so it does not show that the lost engine had one.
  say(MAY_REMAIN);
  return true;
}

/** Returns false if a user owns a folder above: while the engine ended, this user could have replaced the folder by a link. */
const isStillThere = (folder: string): boolean => redirectingUser(join(folder, 'lock')) === undefined;

const movedFolders = (dataDir: string): string[] => movedEngines(dataDir).map(({ folder }) => folder);

function sayEnding(dataDir: string, lost: LostParts, say: (line: string) => void): void {
  say(`${lossText(dataDir, lost)}: ending ${lostWords(lost)}`);
}

/** Throws a UserError if the data folder of the running engine `pid` was moved here, so that the engine cannot end its Pods gracefully. */
export function refuseMoved(dataDir: string, pid: number, from = movedFrom(pid)): void {
  if (from === undefined || from === dataDir) return;
  throw new UserError(
    `the data folder ${dataDir} was moved from ${from} while its engine ran (PID ${pid}): move it back, or end the engine, and its Pods ` +
      `without their grace periods, with '${hintsFor({ dataDir: from }, process.env).engine('down')}'`,
  );
}

async function endEngines(dataDir: string, pids: number[], signal: AbortSignal): Promise<void> {
  for (const pid of pids) sendSignal(pid, 'SIGTERM');
  if (await untilAborted(signal, haveEnded(pids, END_MILLIS, systemTimers()))) return;
  const { asRoot, engine } = hintsFor({ dataDir }, process.env);
  throw new UserError(
    `the engine (PID ${pids.join(', ')}) has not ended after ${END_MILLIS / 1000} s: type '${asRoot(`kill -9 ${pids.join(' ')}`)}', ` +
      `then '${engine('down')}' again`,
  );
}
