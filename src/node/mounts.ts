/** Mounts of the node under a folder: what there is, and ending it. Never follows a link; what is gone is success. */
import { readFile } from 'node:fs/promises';
import { runCommand, runCommandOk } from '../platform/processes.ts';

/** Mount points at or under the folder, the deepest and newest last. */
export async function mountsUnder(folder: string): Promise<string[]> {
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n');
  return lines
    .map((line) =>
      (line.split(' ')[4] ?? '').replace(/\\([0-7]{3})/g, (_, octal) => String.fromCharCode(parseInt(octal, 8))),
    )
    .filter((point) => point === folder || point.startsWith(`${folder}/`));
}

/** Rejects with the mount point and the kernel's reason where something still uses it. */
export async function unmountUnder(folder: string, signal: AbortSignal): Promise<void> {
  for (const point of (await mountsUnder(folder)).reverse()) {
    const result = await runCommand('umount', ['--no-canonicalize', point], { signal });
    if (result.code !== 0 && (await mountsUnder(folder)).includes(point)) {
      throw new Error(`cannot unmount ${point}: ${result.stderr.trim()}`);
    }
  }
}

export async function mountTmpfs(folder: string, options: string[], signal: AbortSignal): Promise<void> {
  await runCommandOk('mount', ['-t', 'tmpfs', '-o', options.join(','), 'tmpfs', folder], { signal });
}

/** `source` may be a magic link (/proc/<pid>/fd/<n>): it is not resolved before the kernel sees it. */
export async function bindMount(source: string, target: string, signal: AbortSignal): Promise<void> {
  await runCommandOk('mount', ['--no-canonicalize', '--bind', source, target], { signal });
}
