/** Control groups of processes, in both versions: v2 has one hierarchy, v1 one per controller. */
import { existsSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = '/sys/fs/cgroup';

/** The folders of the process's cgroups; none if it has ended. Source: cgroups(7), /proc/<pid>/cgroup. */
export function cgroupFolders(pid: number): string[] {
  let lines: string;
  try {
    lines = readFileSync(`/proc/${pid}/cgroup`, 'utf8');
  } catch {
    return [];
  }
  return parseCgroups(lines, existsSync(join(ROOT, 'unified')));
}

/** `hybrid`: v1 hierarchies, with that of v2 in the folder `unified`. */
export function parseCgroups(lines: string, hybrid: boolean): string[] {
  return lines
    .split('\n')
    .map((line) => /^\d+:([^:]*):(.*)$/.exec(line))
    .filter((match) => match !== null)
    .map(([, controllers = '', path = '']) => {
      const hierarchy = controllers === '' ? (hybrid ? 'unified' : '') : controllers.replace(/^name=/, '');
      return join(ROOT, hierarchy, path);
    });
}

/** Removes the empty ones; the kernel keeps the others. */
export function removeEmptyCgroups(folders: Iterable<string>): void {
  for (const folder of folders) {
    try {
      rmdirSync(folder);
    } catch {
      // It is already gone, or still has processes.
    }
  }
}
