/** A scratch folder on a disk of its own, in memory, which files of other tests do not fill. */
import { runCommandOk } from '../../src/platform/processes.ts';
import { type Scratch, scratchFolder } from './lifepod.ts';

/** `inodes` limits the number of files. */
export async function ownDisk(size: string, inodes: number): Promise<Scratch> {
  const scratch = scratchFolder();
  await runCommandOk('mount', [
    '-t',
    'tmpfs',
    '-o',
    `size=${size},nr_inodes=${inodes},mode=0700`,
    'tmpfs',
    scratch.path,
  ]);
  return scratch;
}
