/** Removes a folder that containers may still be writing to. */
import { existsSync } from 'node:fs';
import { runCommandOk } from './processes.ts';

/**
 * Uses rm(1), which descends by file descriptors: fs.rm() walks by path and could leave the folder if a directory in it is replaced
 * by a link. rm(1) also handles trees deeper than PATH_MAX and names that are not valid UTF-8.
 * A missing path is success. Other file systems mounted in the folder are not entered, and make this reject.
 */
export async function removeTree(path: string): Promise<void> {
  if (existsSync(path)) await runCommandOk('rm', ['-rf', '--one-file-system', '--', path]);
}
