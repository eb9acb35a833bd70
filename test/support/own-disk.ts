/** A scratch folder on a disk of its own, in memory: what other tests write elsewhere does not fill it. */
import { runCommandOk } from '../../src/platform/processes.ts';
import { type Scratch, scratchFolder } from './lifepod.ts';

/** `inodes`: how many files it can have. */
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
