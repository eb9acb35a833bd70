/** cgroup v2 has one hierarchy; v1 has several hierarchies with different controllers. */
import { existsSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = '/sys/fs/cgroup';

/** Returns the folders of the process's cgroups; an empty list if the process has ended. Source: cgroups(7), /proc/<pid>/cgroup. */
export function cgroupFolders(pid: number): string[] {
  let lines: string;
  try {
    lines = readFileSync(`/proc/${pid}/cgroup`, 'utf8');
  } catch {
    return [];
  }
  return parseCgroups(lines, existsSync(join(ROOT, 'unified')));
}

/**
 * Returns the folders of the cgroups in `lines`, the content of /proc/<pid>/cgroup. `hybrid`: the machine uses v1 and has the v2 hierarchy
 * in the folder `unified`.
 */
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

/** The kernel refuses to remove cgroups that are not empty. */
export function removeEmptyCgroups(folders: Iterable<string>): void {
  for (const folder of folders) {
    try {
      rmdirSync(folder);
    } catch {}
  }
}
