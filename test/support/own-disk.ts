/** Creates a scratch folder on a separate file system in memory, so that files of other tests do not fill it. */
import { runCommandOk } from '../../src/platform/processes.ts';
import { type Scratch, scratchFolder } from './lifepod.ts';

/** Creates the folder on a file system with the capacity `size`, in the form of mount(8) such as 64m, and at most `inodes` files. */
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
