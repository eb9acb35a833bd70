import { existsSync, mkdirSync, rmdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Creates the folder and its missing parents with mode 0700. Returns the created folders, each before its parent. If the folder cannot be
 * created, removes the created parents and throws. mkdirSync() with the option `recursive` never returns in file systems that report ENOENT
 * for a new folder, such as /proc.
 */
export function createFolders(path: string): string[] {
  try {
    mkdirSync(path, 0o700);
    return [path];
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' && statSync(path).isDirectory()) return [];
    if (code !== 'ENOENT' || existsSync(dirname(path))) throw error;
    const parents = createFolders(dirname(path));
    try {
      return [...createFolders(path), ...parents];
    } catch (failure) {
      removeFolders(parents);
      throw failure;
    }
  }
}

/** Returns whether the path leads to, or through, something other than a folder; false if it does not exist or cannot be examined. */
export function isOtherThanFolder(path: string): boolean {
  try {
    return !statSync(path).isDirectory();
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOTDIR';
  }
}

/** Keeps folders that are not empty. `created` is the result of createFolders(). */
export function removeFolders(created: readonly string[]): void {
  for (const folder of created) removeIfEmpty(folder);
}

/** Does nothing if the folder does not exist, has files, or is a mount point. */
export function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {}
}

/** Returns why createFolders() has failed, as a part of a sentence. `error`: the error of createFolders(). */
export function creationProblem(error: unknown): string {
  const { code, syscall, message } = error as NodeJS.ErrnoException;
  if (code !== 'ENOENT') return message;
  if (syscall === 'mkdir') return 'its file system allows no new folders';
  return 'a symbolic link in its path leads to a missing folder, which must be created or mounted';
}
