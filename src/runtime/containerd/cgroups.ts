/** Control groups of processes, in both versions: one hierarchy in v2, one a controller in v1. */
import { existsSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = '/sys/fs/cgroup';

/** The folders of the process's cgroups; none where it has ended. Source: cgroups(7), /proc/<pid>/cgroup. */
export function cgroupFolders(pid: number): string[] {
  let lines: string;
  try {
    lines = readFileSync(`/proc/${pid}/cgroup`, 'utf8');
  } catch {
    return [];
  }
  return parseCgroups(lines, existsSync(join(ROOT, 'unified')));
}

/** `hybrid`: v1 hierarchies with v2's own beside them. */
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

/** Removes those that are empty; the kernel keeps the others. */
export function removeEmptyCgroups(folders: Iterable<string>): void {
  for (const folder of folders) {
    try {
      rmdirSync(folder);
    } catch {
      // It is gone already, or somebody lives in it.
    }
  }
}
