/**
 * One interface to both versions of the kernel's control groups. Version 1 has one hierarchy per controller or set of controllers. Version
 * 2 has one hierarchy, and the controllers of a group are enabled in its parent group.
 *
 * Paths are relative to the root of the hierarchies, such as /lifepod-1a2b/kubepods. Every call may be repeated. A limit is skipped if the
 * machine lacks its controller or, in version 2, if the kernel refuses to enable the controller.
 *
 * Sources: the kernel's documents on cgroup v1 and v2; the conversion of CPU shares to a weight is upstream's (pkg/kubelet/cm, v1.33).
 */
import { existsSync, readdirSync } from 'node:fs';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { UserError } from '../files.ts';
import { enableInContainer } from './cgroup-root.ts';
import { foldersIn, gone, killIn, processesIn, removeFolder, treeOf } from './group-folders.ts';

export const CGROUP_ROOT = '/sys/fs/cgroup';

export interface CgroupLimits {
  /** The weight of the group when it competes with its siblings for CPU time, from 2 to 262144. */
  cpuShares?: number;
  /** Maximum CPU time, in microseconds, in each period of 100 ms. */
  cpuQuotaMicros?: number;
  memoryBytes?: number;
  pids?: number;
  /** By page size, such as 2MB or 1GB, as in the names of the kernel's files. */
  hugepageBytes?: Readonly<Record<string, number>>;
}

/** The OOM kills in a group and its descendants since the group was created. */
export interface OomKills {
  /** A group that is created later at the same path has another ID. */
  groupId: string;
  count: number;
  /** group: a kill of a whole group by memory.oom.group counts once (Linux 5.17 or later). process: each killed process counts. */
  unit: 'group' | 'process';
}

export interface Cgroups {
  version: 1 | 2;
  /**
   * Whether the runtime would create a missing group without limits, so that set() must be called before the first sandbox or container.
   */
  isMadeByRuntimeToo: boolean;
  /** Returns CRI's `cgroup_parent` for the group: its path or, if the cgroup driver is systemd, the name of its slice. */
  parentName(path: string): string;
  /**
   * Creates the group and its missing parents, and sets the given limits. Omitted limits do not change. Rejects with a UserError if lifepod
   * has no permission to create groups.
   */
  set(path: string, limits: CgroupLimits): Promise<void>;
  /** Resolves with the names of the direct children; empty if the group does not exist. */
  children(path: string): Promise<string[]>;
  /** Resolves with whether the group or a descendant contains processes; with false if the group does not exist. */
  hasProcesses(path: string): Promise<boolean>;
  /** Undefined in version 1, whose counts exclude descendants, or without the group or memory controller. */
  oomKills(path: string): Promise<OomKills | undefined>;
  /** Keeps groups that contain processes, and their ancestors. */
  removeEmpty(path: string): Promise<void>;
  /** Kills all processes in the group and its descendants, and removes these groups. Rejects if they do not end in about 2 s. */
  remove(path: string): Promise<void>;
}

export const QUOTA_PERIOD_MICROS = 100_000;

export const cgroupVersion = (root = CGROUP_ROOT): 1 | 2 => (existsSync(join(root, 'cgroup.controllers')) ? 2 : 1);

export const openCgroups = (root = CGROUP_ROOT): Promise<Cgroups> =>
  cgroupVersion(root) === 2 ? openV2(root) : openV1(root);

/** In version 2, the root group has no memory.swap.max, so its children are checked. */
export function limitsSwap(root = CGROUP_ROOT): boolean {
  if (cgroupVersion(root) === 1) return existsSync(join(root, 'memory', 'memory.memsw.limit_in_bytes'));
  const entries = readdirSync(root, { withFileTypes: true });
  return entries.some((entry) => entry.isDirectory() && existsSync(join(root, entry.name, 'memory.swap.max')));
}

const CGROUPFS = { isMadeByRuntimeToo: false, parentName: (path: string): string => path };

/** In the hierarchies of other controllers, the runtime creates the groups. */
const V1_CONTROLLERS = ['cpu', 'memory', 'pids', 'hugetlb'];

async function openV1(root: string): Promise<Cgroups> {
  // `cpu` may be a link to the folder cpu,cpuacct. Links are skipped, so that each hierarchy is listed once.
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

/** The container runtime enables other controllers for its containers. */
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
    const all = (): Promise<boolean> => write(controllers);
    // The kernel refuses the whole write if it refuses one of the controllers.
    if (!(await all()) && !(folder === root && (await enableInContainer(root, all)))) {
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
        // systemd has probably disabled a controller in a parent group: when it sets up a unit, it disables controllers that no unit needs.
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

/** The error codes for a missing permission, a read-only mount, or an unsuitable group. */
const REFUSALS = ['EACCES', 'EBUSY', 'EINVAL', 'EOPNOTSUPP', 'EPERM', 'EROFS'];

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
      `the control group ${folder} cannot be created (${code}): run lifepod where it can write to ${CGROUP_ROOT}; a container needs its own writable mount of cgroups there`,
    );
  }
}

/** Converts CPU shares of version 1 (2 to 262144) to a CPU weight of version 2 (1 to 10000). */
export const cpuWeight = (shares: number): number => 1 + Math.floor(((shares - 2) * 9999) / 262_142);

const END_TRIES = 200;
const END_RETRY_MILLIS = 10;

function removals(
  hierarchies: readonly string[],
  removed: (folder: string) => void = () => undefined,
): Pick<Cgroups, 'children' | 'hasProcesses' | 'removeEmpty' | 'remove'> {
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
    async hasProcesses(path) {
      for (const hierarchy of hierarchies)
        for (const group of await treeOf(join(hierarchy, path))) if ((await processesIn(group)).length > 0) return true;
      return false;
    },
    removeEmpty,
    async remove(path) {
      // Version 1 has no file that reports the end of a group's last process, so both versions poll.
      for (let tries = 1; ; tries++) {
        await removeEmpty(path);
        const left = hierarchies.map((hierarchy) => join(hierarchy, path)).filter((folder) => existsSync(folder));
        if (left.length === 0) return;
        if (tries === END_TRIES) throw new Error(`the control group ${left[0]} still has processes after SIGKILL`);
        for (const folder of left) await killIn(folder);
        await sleep(END_RETRY_MILLIS);
      }
    },
  };
}
