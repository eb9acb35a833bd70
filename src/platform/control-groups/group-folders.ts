/** Reads and changes the folders of control groups in one hierarchy, and finds the processes in them. */
import { existsSync } from 'node:fs';
import { readdir, readFile, rmdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Resolves with the names of the subfolders; empty if the folder does not exist. */
export async function foldersIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(gone);
  return (entries ?? []).filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

/** Each folder comes after its subfolders, for removal. */
export async function treeOf(folder: string): Promise<string[]> {
  if (!existsSync(folder)) return [];
  const below = await Promise.all((await foldersIn(folder)).map((name) => treeOf(join(folder, name))));
  return [...below.flat(), folder];
}

/** Resolves with false if the group contains processes or groups. */
export async function removeFolder(folder: string): Promise<boolean> {
  try {
    await rmdir(folder);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return true;
    if (code === 'EBUSY' || code === 'ENOTEMPTY') return false;
    throw error;
  }
}

/** Kills the processes in the group and its descendants. */
export async function killIn(folder: string): Promise<void> {
  for (const group of await treeOf(folder)) {
    for (const pid of await processesIn(group)) {
      if (pid === '0') continue;
      try {
        process.kill(Number(pid), 'SIGKILL');
      } catch {
        // The process has probably just ended. If it has not, remove() tries again.
      }
    }
  }
}

/**
 * Resolves with PIDs; a process in a PID namespace that this process cannot see has the PID 0. A container that may write to its group can
 * create threaded groups: Linux refuses to list their processes, which are in the list of the group above them that is not threaded.
 */
export async function processesIn(group: string): Promise<string[]> {
  const listed = readFile(join(group, 'cgroup.procs'), 'utf8');
  const pids =
    (await listed.catch((error: NodeJS.ErrnoException) => (error.code === 'ENOTSUP' ? '' : gone(error)))) ?? '';
  return pids.split('\n').filter((line) => line !== '');
}

/** Returns undefined for the error of a group that does not exist, or is being removed. Throws other errors. */
export function gone(error: unknown): undefined {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== 'ENOENT' && code !== 'ENODEV') throw error;
  return undefined;
}
