/**
 * Control groups behind one interface, for both versions of the kernel's: version 1 has a hierarchy a controller, each
 * mounted in a folder of the root; version 2 has one hierarchy, and a group's controllers are enabled in the group above.
 *
 * Boundary: does not know Pods. Paths begin at the root: /lifepod-1a2b/kubepods.
 * Invariants: every call may be repeated. Limits of controllers that the machine lacks, or does not let lifepod use, are
 * skipped. If groups cannot be created at all, set() rejects with a UserError.
 * Sources: the kernel's documents on cgroup v1 and v2; the weight of shares is upstream's (pkg/kubelet/cm, v1.33).
 */
import { existsSync, readdirSync } from 'node:fs';
import { mkdir, readdir, readFile, rmdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { UserError } from './files.ts';

export const CGROUP_ROOT = '/sys/fs/cgroup';

export interface CgroupLimits {
  /** 2 to 262144; the weight of the group relative to its siblings. */
  cpuShares?: number;
  /** CPU time in each period of 100 ms. */
  cpuQuotaMicros?: number;
  memoryBytes?: number;
  pids?: number;
  /** By page size as the kernel writes it: 2MB, 1GB. */
  hugepageBytes?: Readonly<Record<string, number>>;
}

/** The OOM kills in a group and in the groups below it, since it was created. */
export interface OomKills {
  /** Differs for a group that is created at the same path later. */
  groupId: string;
  count: number;
  /** The count is of kills of whole groups (memory.oom.group; since Linux 5.17), or of processes. */
  unit: 'group' | 'process';
}

export interface Cgroups {
  version: 1 | 2;
  /** Whether the runtime creates a missing group, without limits: then set() must be called before the first container is created. */
  isMadeByRuntimeToo: boolean;
  /** The group as CRI's `cgroup_parent` names it: its path, or the name of its slice. */
  parentName(path: string): string;
  /** Creates the group and its missing parents, and sets the given limits. */
  set(path: string, limits: CgroupLimits): Promise<void>;
  /** The names of the direct children; empty if there is no such group. */
  children(path: string): Promise<string[]>;
  /** undefined if there is no such group, and in version 1, which does not count kills in the groups below. */
  oomKills(path: string): Promise<OomKills | undefined>;
  /** Removes the group and those below, except groups that have processes. */
  removeEmpty(path: string): Promise<void>;
  /** Kills all processes in the group and below, and removes the groups. Rejects if processes do not end. */
  remove(path: string): Promise<void>;
}

export const QUOTA_PERIOD_MICROS = 100_000;

/** `root`: where the hierarchies are mounted. */
export const cgroupVersion = (root = CGROUP_ROOT): 1 | 2 => (existsSync(join(root, 'cgroup.controllers')) ? 2 : 1);

export const openCgroups = (root = CGROUP_ROOT): Promise<Cgroups> =>
  cgroupVersion(root) === 2 ? openV2(root) : openV1(root);

/** Whether the swap of groups can be limited; in version 2 the root group has no such file, so its children are checked. */
export function limitsSwap(root = CGROUP_ROOT): boolean {
  if (cgroupVersion(root) === 1) return existsSync(join(root, 'memory', 'memory.memsw.limit_in_bytes'));
  const entries = readdirSync(root, { withFileTypes: true });
  return entries.some((entry) => entry.isDirectory() && existsSync(join(root, entry.name, 'memory.swap.max')));
}

const CGROUPFS = { isMadeByRuntimeToo: false, parentName: (path: string): string => path };

/** Controllers of version 1 whose limits are set here; the runtime creates the groups of other controllers. */
const V1_CONTROLLERS = ['cpu', 'memory', 'pids', 'hugetlb'];

async function openV1(root: string): Promise<Cgroups> {
  // `cpu` is a link if cpu and cpuacct are mounted together. Removal must visit each folder once, so it skips links.
  const entries = await readdir(root, { withFileTypes: true });
  const hierarchies = entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(root, name));
  const mounted = entries.map(({ name }) => name).filter((name) => V1_CONTROLLERS.includes(name));
  const filesOf = (limits: CgroupLimits): [controller: string, file: string, value: number][] => [
    ...optional('cpu', 'cpu.shares', limits.cpuShares),
    ...optional('cpu', 'cpu.cfs_period_us', limits.cpuQuotaMicros === undefined ? undefined : QUOTA_PERIOD_MICROS),
    ...optional('cpu', 'cpu.cfs_quota_us', limits.cpuQuotaMicros),
    ...optional('memory', 'memory.limit_in_bytes', limits.memoryBytes),
    ...optional('pids', 'pids.max', limits.pids),
    ...Object.entries(limits.hugepageBytes ?? {}).flatMap(([size, bytes]) =>
      optional('hugetlb', `hugetlb.${size}.limit_in_bytes`, bytes),
    ),
  ];
  return {
    ...CGROUPFS,
    version: 1,
    async set(path, limits) {
      await Promise.all(
        mounted.map(async (controller) => {
          const folder = join(root, controller, path);
          await makeGroup(folder);
          for (const [of, file, value] of filesOf(limits))
            if (of === controller) await writeFile(join(folder, file), String(value));
        }),
      );
    },
    oomKills: async () => undefined,
    ...removals(hierarchies),
  };
}

const optional = (controller: string, file: string, value: number | undefined): [string, string, number][] =>
  value === undefined ? [] : [[controller, file, value]];

/** Controllers of version 2 for the limits of Pods. The runtime enables others for containers that need them. */
const V2_CONTROLLERS = ['cpu', 'hugetlb', 'memory', 'pids'];

async function openV2(root: string): Promise<Cgroups> {
  const offered = (await readFile(join(root, 'cgroup.controllers'), 'utf8')).trim().split(' ');
  let controllers = V2_CONTROLLERS.filter((name) => offered.includes(name));
  const enabled = new Set<string>();
  const enable = async (folder: string): Promise<void> => {
    if (enabled.has(folder) || controllers.length === 0) return;
    const write = (names: readonly string[]): Promise<boolean> =>
      writeFile(join(folder, 'cgroup.subtree_control'), names.map((name) => `+${name}`).join(' ')).then(
        () => true,
        refused,
      );
    // The kernel refuses the whole write if it refuses one controller, so try each alone.
    if (!(await write(controllers))) {
      const taken: string[] = [];
      for (const name of controllers) if (await write([name])) taken.push(name);
      controllers = taken;
    }
    enabled.add(folder);
  };
  const filesOf = (limits: CgroupLimits): [controller: string, file: string, value: string | number | undefined][] => [
    ['cpu', 'cpu.weight', limits.cpuShares === undefined ? undefined : cpuWeight(limits.cpuShares)],
    [
      'cpu',
      'cpu.max',
      limits.cpuQuotaMicros === undefined ? undefined : `${limits.cpuQuotaMicros} ${QUOTA_PERIOD_MICROS}`,
    ],
    ['memory', 'memory.max', limits.memoryBytes],
    ['pids', 'pids.max', limits.pids],
    ...Object.entries(limits.hugepageBytes ?? {}).map(([size, bytes]): [string, string, number] => [
      'hugetlb',
      `hugetlb.${size}.max`,
      bytes,
    ]),
  ];
  const make = async (path: string, limits: CgroupLimits): Promise<void> => {
    let folder = root;
    for (const part of path.split('/').filter((each) => each !== '')) {
      await enable(folder);
      folder = join(folder, part);
      await makeGroup(folder);
    }
    for (const [controller, file, value] of filesOf(limits))
      if (value !== undefined && controllers.includes(controller)) await writeFile(join(folder, file), String(value));
  };
  return {
    ...CGROUPFS,
    version: 2,
    set: (path, limits) =>
      make(path, limits).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error;
        // A controller was disabled in a parent group: whenever systemd sets up a unit, it disables controllers that no unit needs.
        enabled.clear();
        return make(path, limits);
      }),
    oomKills: (path) => readOomKills(join(root, path)),
    ...removals([root], (folder) => enabled.delete(folder)),
  };
}

async function readOomKills(folder: string): Promise<OomKills | undefined> {
  const [text, found] = await Promise.all([
    readFile(join(folder, 'memory.events'), 'utf8').catch(gone),
    stat(folder, { bigint: true }).catch(gone),
  ]);
  if (text === undefined || found === undefined) return undefined;
  const events = new Map(text.split('\n').map((line) => line.split(' ') as [event: string, count: string]));
  const groups = events.get('oom_group_kill');
  return {
    groupId: String(found.ino),
    count: Number(groups ?? events.get('oom_kill') ?? 0),
    unit: groups === undefined ? 'process' : 'group',
  };
}

/** Errors for missing permission, and for a group that cannot have both processes and controllers for its children. */
const REFUSALS = ['EACCES', 'EBUSY', 'EINVAL', 'EOPNOTSUPP', 'EPERM', 'EROFS'];

/** For catch(): returns false if the kernel refused the write, and rethrows other errors. */
function refused(error: unknown): false {
  if (!REFUSALS.includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  return false;
}

async function makeGroup(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true });
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (!['EACCES', 'EPERM', 'EROFS'].includes(code)) throw error;
    throw new UserError(
      `the control group ${folder} cannot be created (${code}): run lifepod where ${CGROUP_ROOT} can be written, in a container with its own writable mount of it`,
    );
  }
}

/** Shares from 2 to 262144 as a weight from 1 to 10000. */
export const cpuWeight = (shares: number): number => 1 + Math.floor(((shares - 2) * 9999) / 262_142);

const END_TRIES = 200;
const END_RETRY_MILLIS = 10;

/** `removed` is called for each removed folder. */
function removals(
  hierarchies: readonly string[],
  removed: (folder: string) => void = () => undefined,
): Pick<Cgroups, 'children' | 'removeEmpty' | 'remove'> {
  const removeEmpty = async (path: string): Promise<void> => {
    await Promise.all(
      hierarchies.map(async (hierarchy) => {
        for (const folder of await treeOf(join(hierarchy, path))) if (await removeFolder(folder)) removed(folder);
      }),
    );
  };
  return {
    async children(path) {
      const names = await Promise.all(hierarchies.map((hierarchy) => foldersIn(join(hierarchy, path))));
      return [...new Set(names.flat())];
    },
    removeEmpty,
    async remove(path) {
      // Version 1 does not notify of the end of processes, so poll.
      for (let tries = 1; ; tries++) {
        await removeEmpty(path);
        const left = hierarchies.map((hierarchy) => join(hierarchy, path)).filter((folder) => existsSync(folder));
        if (left.length === 0) return;
        if (tries === END_TRIES) throw new Error(`the control group ${left[0]} does not empty`);
        for (const folder of left) await killIn(folder);
        await sleep(END_RETRY_MILLIS);
      }
    },
  };
}

async function foldersIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(gone);
  return (entries ?? []).filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

/** The folder and all folders below it, deepest first. */
async function treeOf(folder: string): Promise<string[]> {
  if (!existsSync(folder)) return [];
  const below = await Promise.all((await foldersIn(folder)).map((name) => treeOf(join(folder, name))));
  return [...below.flat(), folder];
}

async function removeFolder(folder: string): Promise<boolean> {
  try {
    await rmdir(folder);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return true;
    // The group, or one below it, has processes.
    if (code === 'EBUSY' || code === 'ENOTEMPTY') return false;
    throw error;
  }
}

async function killIn(folder: string): Promise<void> {
  for (const group of await treeOf(folder)) {
    const pids = (await readFile(join(group, 'cgroup.procs'), 'utf8').catch(gone)) ?? '';
    for (const pid of pids.split('\n').filter((line) => line !== '' && line !== '0')) {
      try {
        process.kill(Number(pid), 'SIGKILL');
      } catch {
        // The process has just ended.
      }
    }
  }
}

/** For catch(): returns undefined if the file or group does not exist, and rethrows other errors. */
function gone(error: unknown): undefined {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== 'ENOENT' && code !== 'ENODEV') throw error;
  return undefined;
}
