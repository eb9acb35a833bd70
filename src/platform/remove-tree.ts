/** Removes a folder that containers may still be writing to. */
import { existsSync } from 'node:fs';
import { runCommandOk } from './processes.ts';

/**
 * Removes the folder with rm(1), which opens each directory and deletes entries relative to its file descriptor. fs.rm() uses paths and
 * could delete files outside the folder if a container replaces a directory with a link. rm(1) also removes trees deeper than PATH_MAX
 * and names that are not valid UTF-8. Does nothing if the folder does not exist. Does not enter file systems that are mounted in the
 * folder, and rejects if there are any.
 */
export async function removeTree(path: string): Promise<void> {
  if (existsSync(path)) await runCommandOk('rm', ['-rf', '--one-file-system', '--', path]);
}
