/** Removes a folder that containers wrote to, and may write to still. */
import { existsSync } from 'node:fs';
import { runCommandOk } from './processes.ts';

/**
 * By rm(1), which goes from folder to folder by handles: a walk by path, as fs.rm() has it, would leave the folder where
 * one in it becomes a link meanwhile. It knows folders deeper than a path may be long, too, and names that are no text.
 * What is not there is no error; what is mounted in it is not entered, and is one.
 */
export async function removeTree(path: string): Promise<void> {
  if (existsSync(path)) await runCommandOk('rm', ['-rf', '--one-file-system', '--', path]);
}
