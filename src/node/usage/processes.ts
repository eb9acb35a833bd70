import { readdir, readFile } from 'node:fs/promises';

/**
 * Resolves to the number of processes by container ID, according to the control group of each process. Containers without processes are
 * absent.
 */
export async function countProcesses(containerIds: readonly string[]): Promise<Map<string, number>> {
  const ids = new Set(containerIds);
  const counts = new Map<string, number>();
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    const groups = await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '');
    // A line contains the container's ID: 4:memory:/kubepods/pod1-2-3/ID, or 0::/kubepods.slice/crio-ID.scope.
    const id = groups.split(/[^A-Za-z0-9]+/).find((word) => ids.has(word));
    if (id !== undefined) counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}
