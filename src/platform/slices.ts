/**
 * Control groups as slices of systemd, for a runtime whose cgroup driver is systemd: `/lifepod-1a2b/kubepods` is the unit
 * lifepod_1a2b-kubepods.slice, in the group /lifepod_1a2b.slice/lifepod_1a2b-kubepods.slice. Each slice is a unit with the limits
 * as its properties, so that systemd does not reset them. All limits are written into the kernel's files as well: systemd makes a
 * group a moment after it has answered, and has no property for huge pages.
 *
 * Boundary: paths and limits are those of cgroups.ts.
 * Invariants: those of cgroups.ts. The units are transient: they leave no file when they are stopped, and their drop-ins go with the
 * top slice.
 * Sources: systemd.slice(5), systemd.resource-control(5), org.freedesktop.systemd1(5); the properties are those that the
 * kubelet's systemd driver sets (opencontainers/cgroups, v1.33).
 */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type CgroupLimits, type Cgroups, cpuWeight, openCgroups, QUOTA_PERIOD_MICROS } from './cgroups.ts';
import { UserError } from './files.ts';
import { runCommandOk } from './processes.ts';

/** As busctl takes it: the name, the type and the value of a property. */
type Property = readonly [name: string, type: 'b' | 's' | 't', value: string];

/** A dash separates a slice from the one that it is in. */
const escaped = (part: string): string => part.replaceAll('-', '_');
const unescaped = (part: string): string => part.replaceAll('_', '-');
const partsOf = (path: string): string[] => path.split('/').filter((part) => part !== '');

export const sliceName = (path: string): string => `${partsOf(path).map(escaped).join('-')}.slice`;

/** The group of a slice: below those of all slices that it is in. */
export const slicePath = (path: string): string =>
  partsOf(path)
    .map((_, index, parts) => `/${sliceName(parts.slice(0, index + 1).join('/'))}`)
    .join('');

/** Where systemd reads units and their drop-ins from until the machine ends. */
const RUNTIME_UNITS = '/run/systemd/system';

/** Rejects with a UserError where systemd cannot be asked for slices. `units`: the folder for drop-ins. */
export async function openSlices(cgroups?: Cgroups, units = RUNTIME_UNITS): Promise<Cgroups> {
  const groups = cgroups ?? (await openCgroups());
  const shutdown = shutdownDropIns(units);
  const started = new Set<string>();

  /** The slice is there afterwards, with the limits. */
  const ensure = async (path: string, limits: CgroupLimits): Promise<void> => {
    const name = sliceName(path);
    const properties = limitProperties(limits, groups.version);
    if (started.has(name)) {
      if (properties.length > 0) await setProperties(name, properties);
      return;
    }
    await startSlice(name, [...SLICE_PROPERTIES, ...accounting(groups.version), ...properties]).catch(
      // An earlier engine has started it.
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
 * Without default dependencies systemd does not stop the slices when a shutdown begins: the engine ends the Pods first. Drop-ins say
 * so, for the top slice and, by their prefix, for all below: systemd has given a slice its dependencies before it looks at the
 * property of that name in StartTransientUnit.
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

/** Accounting enables the controllers in the groups of all slices above. */
const accounting = (version: 1 | 2): Property[] =>
  ['CPUAccounting', 'MemoryAccounting', 'TasksAccounting', version === 2 ? 'IOAccounting' : 'BlockIOAccounting'].map(
    (name) => [name, 'b', 'true'],
  );

const MICROS_PER_SECOND = 1_000_000;

/** Huge pages have no property. */
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

/** The properties hold until the unit stops. */
const setProperties = (name: string, properties: readonly Property[]): Promise<void> =>
  callManager('SetUnitProperties', 'sba(sv)', [name, 'true', ...textOf(properties)]);

async function callManager(method: string, signature: string, values: readonly string[]): Promise<void> {
  const manager = ['org.freedesktop.systemd1', '/org/freedesktop/systemd1', 'org.freedesktop.systemd1.Manager', method];
  try {
    await runCommandOk('busctl', ['--quiet', 'call', ...manager, signature, ...values]);
  } catch (error) {
    throw new UserError(
      `systemd refuses the slice ${values[0]} (${(error as Error).message}): the container runtime leaves control groups to systemd, so it must be this machine's first process and answer on D-Bus`,
    );
  }
}
