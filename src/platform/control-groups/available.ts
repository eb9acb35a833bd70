/**
 * Checks that this machine offers the control groups without which runc runs no container. runc uses version 2 if it is mounted at
 * /sys/fs/cgroup itself, else version 1.
 * Sources: proc_pid_mountinfo(5), cgroups(7).
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { asRoot } from '../programs/typed-program.ts';
import { CGROUP_ROOT } from './cgroups.ts';

export interface ControlGroupFacts {
  /** The content of /proc/self/mountinfo. */
  mountinfo: string;
  /** The content of cgroup.controllers at /sys/fs/cgroup; undefined: version 2 is not mounted there. */
  offered: string | undefined;
  /** The content of /proc/cgroups; empty if the kernel has no such file. */
  hierarchies: string;
  /** The content of /proc/self/cgroup. */
  memberships: string;
}

export interface ControlGroupProblem {
  /** The first part of a sentence, such as `no control groups are mounted at /sys/fs/cgroup`. */
  what: string;
  advice: string;
}

/** A machine that lacks some of these still runs Pods, for example a Raspberry Pi without `memory`. */
const USED = ['cpu', 'memory', 'pids'];
const IN_CONTAINER = 'in a container, give it the control groups of the machine';

/** Returns why runc would run no container; undefined if at least one of the used controllers is available. */
export function controlGroupProblem(
  env: NodeJS.ProcessEnv = process.env,
  facts = readFacts(),
): ControlGroupProblem | undefined {
  const { mountinfo, offered, hierarchies, memberships } = facts;
  const mounted = offered === undefined ? controllersOfMounts(mountinfo) : offered.trim().split(' ');
  if (USED.some((name) => mounted.includes(name))) return undefined;
  const groups = v1Groups(hierarchies);
  const isV1 = groups.some((group) => group.some((name) => USED.includes(name)));
  const options = [...groups.map((names) => names.join()), ...unmountedNames(memberships, mountinfo)];
  // If something is already mounted at the root, for example by systemd, another mount would hide the hierarchies below it.
  const mountV1 = `mountpoint -q ${CGROUP_ROOT} || mount -t tmpfs cgroup ${CGROUP_ROOT}; for c in ${options.join(' ')}; do d=\${c##*name=}; d=${CGROUP_ROOT}/\${d%%,*}; mkdir -p $d; mount -t cgroup -o $c cgroup $d; done`;
  const reboot = 'or boot with the kernel parameter cgroup_no_v1=all';
  if (offered !== undefined)
    return {
      what: `the control groups at ${CGROUP_ROOT} have none of the controllers ${USED.join(', ')}`,
      advice: isV1
        ? `these are in hierarchies of cgroup v1: mount those as root with 'umount ${CGROUP_ROOT} && { ${mountV1}; }', ${reboot}`
        : `boot without the kernel parameter cgroup_disable, or, ${IN_CONTAINER}`,
    };
  const mountV2 = asRoot(`mount -t cgroup2 cgroup2 ${CGROUP_ROOT}`, env);
  const isMounted = / - cgroup2? /.test(mountinfo);
  const mount = isV1 ? `as root with '${mountV1}', ${reboot}` : `with '${mountV2}'`;
  return {
    what: `no control groups${isMounted ? ` with the controllers ${USED.join(', ')}` : ''} are mounted at ${CGROUP_ROOT}`,
    advice: `mount them ${mount}, or, ${IN_CONTAINER}`,
  };
}

/** The result includes mount options that are not controllers. */
const controllersOfMounts = (mountinfo: string): string[] =>
  [...mountinfo.matchAll(/ - cgroup \S+ (\S+)$/gm)].flatMap(([, options = '']) => options.split(','));

/**
 * Returns the mount options of the hierarchies of version 1 that have a name instead of controllers, such as that of systemd, and are not
 * mounted. containerd reports no metrics of a container while a hierarchy of its processes is not mounted.
 */
const unmountedNames = (memberships: string, mountinfo: string): string[] =>
  [...memberships.matchAll(/^\d+:(name=[^:,]+):/gm)].flatMap(([, name = '']) =>
    controllersOfMounts(mountinfo).includes(name) ? [] : [`none,${name}`],
  );

function v1Groups(hierarchies: string): string[][] {
  const groups = new Map<string, string[]>();
  for (const line of hierarchies.split('\n')) {
    const [name = '', id = '0', , enabled] = line.split(/\s+/);
    if (name === '' || name.startsWith('#') || id === '0' || enabled !== '1') continue;
    groups.set(id, [...(groups.get(id) ?? []), name]);
  }
  return [...groups.values()];
}

const readFacts = (): ControlGroupFacts => ({
  mountinfo: readFileSync('/proc/self/mountinfo', 'utf8'),
  offered: readIfPresent(join(CGROUP_ROOT, 'cgroup.controllers')),
  hierarchies: readIfPresent('/proc/cgroups') ?? '',
  memberships: readIfPresent('/proc/self/cgroup') ?? '',
});

function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
