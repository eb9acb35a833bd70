/**
 * Control groups as slices of systemd, for a runtime whose cgroup driver is systemd: `/lifepod-1a2b/kubepods` is the unit
 * lifepod_1a2b-kubepods.slice, in the group /lifepod_1a2b.slice/lifepod_1a2b-kubepods.slice. Each slice is a unit with the limits
 * as its properties, so that systemd does not reset them. All limits are also written to the kernel's files, because systemd creates
 * the group a moment after it has answered, and has no property for huge pages.
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

/** Name, type and value of a property, as busctl expects them. */
type Property = readonly [name: string, type: 'b' | 's' | 't', value: string];

/** Replaces dashes, which separate a slice from its parent in a slice name. */
const escaped = (part: string): string => part.replaceAll('-', '_');
const unescaped = (part: string): string => part.replaceAll('_', '-');
const partsOf = (path: string): string[] => path.split('/').filter((part) => part !== '');

export const sliceName = (path: string): string => `${partsOf(path).map(escaped).join('-')}.slice`;

/** The control group of a slice, below the groups of all its parent slices. */
export const slicePath = (path: string): string =>
  partsOf(path)
    .map((_, index, parts) => `/${sliceName(parts.slice(0, index + 1).join('/'))}`)
    .join('');

/** The folder from which systemd reads units and drop-ins that last until the next boot. */
const RUNTIME_UNITS = '/run/systemd/system';

/** Rejects with a UserError if systemd refuses to manage slices. `units`: the folder for drop-ins. */
export async function openSlices(cgroups?: Cgroups, units = RUNTIME_UNITS): Promise<Cgroups> {
  const groups = cgroups ?? (await openCgroups());
  const shutdown = shutdownDropIns(units);
  const started = new Set<string>();

  /** Starts the slice, or updates the limits of a started one. */
  const ensure = async (path: string, limits: CgroupLimits): Promise<void> => {
    const name = sliceName(path);
    const properties = limitProperties(limits, groups.version);
    if (started.has(name)) {
      if (properties.length > 0) await setProperties(name, properties);
      return;
    }
    await startSlice(name, [...SLICE_PROPERTIES, ...accounting(groups.version), ...properties]).catch(
      // The slice exists already: an earlier engine started it.
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
 * Disables the default dependencies of the slices, so that systemd does not stop them at the beginning of a shutdown, before the engine
 * has ended the Pods. This needs drop-ins for the top slice and, by prefix, for all below: systemd adds the dependencies before it reads
 * the property DefaultDependencies in StartTransientUnit.
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

/** systemd has no property for huge pages. */
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

/** Sets properties until the unit stops. */
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
