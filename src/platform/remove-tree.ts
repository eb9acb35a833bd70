import { existsSync } from 'node:fs';
import { runCommandOk } from './processes.ts';

/**
 * Removes a folder to which containers may still be writing. Does nothing if the folder does not exist. Rejects if file systems are mounted
 * in the folder, and keeps their files.
 * rm(1) opens each directory and deletes entries relative to its file descriptor. fs.rm() uses paths and could delete files outside the
 * folder if a container replaces a directory with a link. rm(1) also removes trees deeper than PATH_MAX and names that are not valid UTF-8.
 */
export async function removeTree(path: string): Promise<void> {
  if (existsSync(path)) await runCommandOk('rm', ['-rf', '--one-file-system', '--', path]);
}
