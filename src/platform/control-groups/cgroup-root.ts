/**
 * Enables controllers in the root group of a container that has its own cgroup namespace (cgroup v2), for example a container of Docker.
 *
 * The kernel enables controllers for the children of a group only while the group itself contains no processes. The root group of a
 * container contains the container's processes, so these move to a child group first, as kind and k3s do. The rule does not apply to the
 * kernel's real root group.
 * Source: the kernel's document on cgroup v2, "No Internal Process Constraint".
 */
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Docker's and k3s's own containers use the same name. */
const INIT_GROUP = 'init';

/** Processes that start during a round, for example through `docker exec`, move in a later round. */
const ROUNDS = 10;

/** The kernel's real root group does not have the file cgroup.type. */
const isContainers = (root: string): boolean => existsSync(join(root, 'cgroup.type'));

/**
 * Moves the processes of a container's root group to a child group, and calls `enable` until it resolves with true. Resolves with false if
 * `root` is the real root group, if it has no processes, or if `enable` fails in all rounds.
 */
export async function enableInContainer(root: string, enable: () => Promise<boolean>): Promise<boolean> {
  if (!isContainers(root)) return false;
  for (let round = 1; round <= ROUNDS; round++) {
    const pids = await processesIn(root);
    if (pids.length === 0) return false;
    const group = join(root, INIT_GROUP);
    await mkdir(group, { recursive: true });
    // The kernel moves one process per write. A write that fails is ignored, since the process has probably ended.
    for (const pid of pids) await writeFile(join(group, 'cgroup.procs'), pid).catch(() => undefined);
    if (await enable()) return true;
  }
  return false;
}

/** The kernel lists a process of another PID namespace as 0. */
const processesIn = async (group: string): Promise<string[]> =>
  (await readFile(join(group, 'cgroup.procs'), 'utf8')).split('\n').filter((pid) => pid !== '' && pid !== '0');
