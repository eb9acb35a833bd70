/**
 * Creates control groups as systemd slices, for a container runtime whose cgroup driver is systemd. The path `/lifepod-1a2b/kubepods`
 * becomes the unit lifepod_1a2b-kubepods.slice, whose group is /lifepod_1a2b.slice/lifepod_1a2b-kubepods.slice.
 *
 * The limits are properties of the unit, so that systemd does not reset them. They are also written to the kernel's files, because systemd
 * may create the group only after it has answered the request, and has no property for huge pages.
 *
 * The units are transient: systemd keeps no file of a stopped unit. Their drop-ins are removed together with the top slice.
 *
 * Sources: systemd.slice(5), systemd.resource-control(5), org.freedesktop.systemd1(5); the properties are those that the kubelet's systemd
 * driver sets (opencontainers/cgroups, v1.33).
 */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { UserError } from '../files.ts';
import { runCommandOk } from '../processes.ts';
import { type CgroupLimits, type Cgroups, cpuWeight, openCgroups, QUOTA_PERIOD_MICROS } from './cgroups.ts';

/** Arguments of busctl. The type is a D-Bus type: b is boolean, s is string, t is uint64. */
type Property = readonly [name: string, type: 'b' | 's' | 't', value: string];

/** A dash in the name of a slice separates the name of the parent slice from the rest. */
const escaped = (part: string): string => part.replaceAll('-', '_');
const unescaped = (part: string): string => part.replaceAll('_', '-');
const partsOf = (path: string): string[] => path.split('/').filter((part) => part !== '');

/** For example, /lifepod-1a2b/kubepods becomes lifepod_1a2b-kubepods.slice. */
export const sliceName = (path: string): string => `${partsOf(path).map(escaped).join('-')}.slice`;

/** Returns the path of the slice's control group, which contains the slice names of all parents. */
export const slicePath = (path: string): string =>
  partsOf(path)
    .map((_, index, parts) => `/${sliceName(parts.slice(0, index + 1).join('/'))}`)
    .join('');

/** The next reboot removes the units and drop-ins in this folder. */
const RUNTIME_UNITS = '/run/systemd/system';

/**
 * Resolves with control groups whose set() starts slices, and rejects with a UserError if systemd refuses a slice. `cgroups` writes the
 * kernel's files; `units` is the folder for drop-ins.
 */
export async function openSlices(cgroups?: Cgroups, units = RUNTIME_UNITS): Promise<Cgroups> {
  const groups = cgroups ?? (await openCgroups());
  const shutdown = shutdownDropIns(units);
  const started = new Set<string>();

  const ensure = async (path: string, limits: CgroupLimits): Promise<void> => {
    const name = sliceName(path);
    const properties = limitProperties(limits, groups.version);
    if (started.has(name)) {
      if (properties.length > 0) await setProperties(name, properties);
      return;
    }
    await startSlice(name, [...SLICE_PROPERTIES, ...accounting(groups.version), ...properties]).catch(
      // An earlier engine has probably started the slice. If systemd cannot be reached, this call fails too.
      () => setProperties(name, [...accounting(groups.version), ...properties]),
    );
    started.add(name);
  };
  const stop = async (path: string): Promise<void> => {
    const name = sliceName(path);
    for (const each of started)
      if (each === name || each.startsWith(name.replace(/\.slice$/, '-'))) started.delete(each);
    await runCommandOk('systemctl', ['stop', name]);
  };
  const exists = async (path: string): Promise<boolean> =>
    (await groups.children(dirname(slicePath(path)))).includes(basename(slicePath(path)));

  return {
    version: groups.version,
    isMadeByRuntimeToo: true,
    parentName: sliceName,
    async set(path, limits) {
      const parts = partsOf(path);
      if (started.size === 0) await shutdown.write(parts[0] ?? '');
      for (let depth = 1; depth < parts.length; depth++) {
        const above = parts.slice(0, depth).join('/');
        if (!started.has(sliceName(above))) await ensure(above, {});
      }
      await ensure(path, limits);
      await groups.set(slicePath(path), limits);
    },
    async children(path) {
      const prefix = sliceName(path).replace(/\.slice$/, '-');
      return (await groups.children(slicePath(path)))
        .filter((name) => name.startsWith(prefix) && name.endsWith('.slice'))
        .map((name) => unescaped(name.slice(prefix.length, -'.slice'.length)));
    },
    hasProcesses: (path) => groups.hasProcesses(slicePath(path)),
    oomKills: (path) => groups.oomKills(slicePath(path)),
    async removeEmpty(path) {
      await groups.removeEmpty(slicePath(path));
      if (!(await exists(path))) await stop(path);
    },
    async remove(path) {
      if (await exists(path)) {
        await groups.remove(slicePath(path));
        await stop(path);
      }
      if (partsOf(path).length === 1) await shutdown.remove(path);
    },
  };
}

/**
 * The drop-ins disable the default dependencies of the slices. Otherwise, systemd would stop the slices at the beginning of a shutdown,
 * before the engine has ended the Pods. One drop-in is for the top slice, and one, by prefix, for its descendants. The property
 * DefaultDependencies of StartTransientUnit has no effect, because systemd adds the dependencies before it reads the property.
 */
function shutdownDropIns(units: string) {
  const folders = (top: string): string[] => {
    const name = sliceName(top);
    return [name, name.replace(/\.slice$/, '-.slice')].map((each) => join(units, `${each}.d`));
  };
  return {
    async write(top: string): Promise<void> {
      for (const folder of folders(top)) {
        await mkdir(folder, { recursive: true });
        await writeFile(join(folder, 'lifepod.conf'), '[Unit]\nDefaultDependencies=no\n');
      }
    },
    async remove(top: string): Promise<void> {
      for (const folder of folders(top)) await rm(folder, { recursive: true, force: true });
    },
  };
}

const SLICE_PROPERTIES: readonly Property[] = [['Description', 's', 'Pods of lifepod']];

/** With these properties, systemd enables the controllers that limits need in the groups of the parent slices. */
const accounting = (version: 1 | 2): Property[] =>
  ['CPUAccounting', 'MemoryAccounting', 'TasksAccounting', version === 2 ? 'IOAccounting' : 'BlockIOAccounting'].map(
    (name) => [name, 'b', 'true'],
  );

const MICROS_PER_SECOND = 1_000_000;

/** Omits limits on huge pages, because systemd has no property for them. */
export function limitProperties(limits: CgroupLimits, version: 1 | 2): Property[] {
  const { cpuShares, cpuQuotaMicros, memoryBytes, pids } = limits;
  const perSecond =
    cpuQuotaMicros === undefined ? undefined : (cpuQuotaMicros * MICROS_PER_SECOND) / QUOTA_PERIOD_MICROS;
  const values: [name: string, value: number | undefined][] = [
    version === 2
      ? ['CPUWeight', cpuShares === undefined ? undefined : cpuWeight(cpuShares)]
      : ['CPUShares', cpuShares],
    ['CPUQuotaPerSecUSec', perSecond],
    [version === 2 ? 'MemoryMax' : 'MemoryLimit', memoryBytes],
    ['TasksMax', pids],
  ];
  return values.flatMap(([name, value]): Property[] => (value === undefined ? [] : [[name, 't', String(value)]]));
}

const textOf = (properties: readonly Property[]): string[] => [String(properties.length), ...properties.flat()];

const startSlice = (name: string, properties: readonly Property[]): Promise<void> =>
  callManager('StartTransientUnit', 'ssa(sv)a(sa(sv))', [name, 'replace', ...textOf(properties), '0']);

/** The properties last until the unit stops. Rejects if systemd refuses them. */
const setProperties = (name: string, properties: readonly Property[]): Promise<void> =>
  callManager('SetUnitProperties', 'sba(sv)', [name, 'true', ...textOf(properties)]);

async function callManager(method: string, signature: string, values: readonly string[]): Promise<void> {
  const manager = ['org.freedesktop.systemd1', '/org/freedesktop/systemd1', 'org.freedesktop.systemd1.Manager', method];
  try {
    await runCommandOk('busctl', ['--quiet', 'call', ...manager, signature, ...values]);
  } catch (error) {
    throw new UserError(
      `systemd refuses the slice ${values[0]} (${(error as Error).message}): the container runtime's cgroup driver is systemd, so systemd must run as PID 1 of this machine and be reachable on D-Bus`,
    );
  }
}
