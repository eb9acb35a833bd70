import { runCommandOk } from '../../src/platform/processes.ts';
import { type Scratch, scratchFolder } from './lifepod.ts';

/**
 * Creates a scratch folder on a separate file system in memory, so that files of other tests do not fill it. `size` has the form of
 * mount(8), such as 64m; `inodes` is the maximum number of files.
 */
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
