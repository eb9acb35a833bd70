/** Checks the addresses and ranges in the settings, and sets up the network of Pods. */
import { join } from 'node:path';
import { dnsServiceAddress, kubernetesServiceAddress } from '../apiserver/admission/service-range.ts';
import { type IpRange, parseIpRange } from '../machinery/ip.ts';
import type { ApiAddresses } from '../network/api-address.ts';
import { forwardWarnings } from '../network/nftables/forward-drops.ts';
import { networkNames } from '../network/pod-network/names.ts';
import { type PodNetwork, setUpNetwork } from '../network/pod-network/pod-network.ts';
import { checkRanges, RangeOfOtherEngineError, RangeTakenError } from '../network/pod-network/ranges.ts';
import { otherServiceRanges } from '../network/proxy/other-engines.ts';
import { UserError } from '../platform/files.ts';
import { redirectingUser } from '../platform/folder-owners.ts';
import type { Platform } from '../platform/platform.ts';
import { listProcesses } from '../platform/processes.ts';
import { sharesPids } from '../platform/programs/pid-namespace.ts';
import { rootCommand, rootProgram } from '../platform/programs/typed-program.ts';
import { type EngineProcess, engineProcesses } from './data-folder/engine-processes.ts';
import { isDataFolder } from './data-folder/inner-folder.ts';
import { checkPortFree, findCniFolder, PortInUseError } from './machine-checks.ts';
import { addressForPods, listenAddresses } from './options/api-settings.ts';
import { type StartSettings, servesLifepod, startBeside } from './options/beside.ts';
import { type EngineRecord, readEngineRecord, type Settings } from './settings.ts';

/** Rejects with a UserError if the port, an address or a new range of the settings cannot be used on this machine. */
export async function checkNetwork(
  settings: StartSettings,
  record: EngineRecord | undefined,
  signal: AbortSignal,
): Promise<void> {
  await checkAddresses(settings, record, signal);
  await checkNewRanges(settings, record, signal);
}

/**
 * Rejects with a UserError if the API server cannot listen on one of its addresses, except the address for Pods, which does not exist
 * before the network is set up. If another engine also uses the recorded ranges, for example because this data folder is a copy, the error
 * is about the ranges, because another port would not be sufficient. `mayServe`: returns whether another engine may have the port.
 */
export async function checkAddresses(
  settings: StartSettings,
  record: EngineRecord | undefined,
  signal: AbortSignal,
  mayServe = mayBeEngine,
): Promise<void> {
  const { port } = settings;
  const forPods = addressForPods(settings);
  for (const host of listenAddresses(settings)) {
    if (host === forPods) continue;
    await checkPortFree(host, port).catch(async (error: unknown) => {
      // A program that accepts connections without answering would delay the error, so it is only asked if it may be an engine.
      if (!(error instanceof PortInUseError)) throw error;
      if (!mayServe(port) || !(await servesLifepod(host, port))) throw ofSession(error, settings);
      if (record !== undefined) await checkRecordedRanges(settings, signal);
      const advice = await startBeside(settings, record, '--port', 'start this one with options of its own');
      throw new UserError(`port ${port} on ${host} is in use by another engine of lifepod: ${advice}`);
    });
  }
}

/** Returns the error with other advice if a session starts the engine, because `lifepod run` has no option --port. */
function ofSession(error: PortInUseError, { dataDir, forSessions }: StartSettings): UserError {
  if (forSessions !== true) return error;
  return new UserError(
    `${error.use}: first start this engine on a free port with '${rootCommand('up --detach --port 0', dataDir)}'`,
  );
}

/**
 * Returns whether another engine of this machine may have the port. The data folder of an engine in a container is in another file system,
 * so its port is not known.
 */
export const mayBeEngine = (
  port: number,
  engines: readonly EngineProcess[] = engineProcesses(listProcesses()),
  isHere = sharesPids,
): boolean =>
  engines.some(
    ({ pid, dataDir }) =>
      pid !== process.pid && pid !== process.ppid && ((isHere(pid) ? portIn(dataDir) : undefined) ?? port) === port,
  );

/**
 * Returns the recorded port of the engine; undefined if it is not known, or if another user could choose the file that root reads: every
 * user can start a process whose command line looks like an engine's and names any data folder.
 */
function portIn(dataDir: string | undefined): number | undefined {
  try {
    if (dataDir === undefined || redirectingUser(join(dataDir, 'engine.json')) !== undefined) return undefined;
    return isDataFolder(dataDir) ? readEngineRecord(dataDir)?.port : undefined;
  } catch {
    return undefined;
  }
}

/** Rejects with the error of ofRecordedRange() if another engine has a route in the recorded ranges. Ignores other errors. */
async function checkRecordedRanges(settings: Settings, signal: AbortSignal): Promise<void> {
  const error = await otherEngineInRange(settings, signal);
  if (error !== undefined) throw ofRecordedRange(error, settings.dataDir);
}

/**
 * Resolves with the error about a route of another engine in the ranges; with undefined if there is no such route, or if checkRanges()
 * fails with another error.
 */
export async function otherEngineInRange(
  { dataDir, podCidr, serviceCidr }: Pick<Settings, 'dataDir' | 'podCidr' | 'serviceCidr'>,
  signal: AbortSignal,
): Promise<RangeOfOtherEngineError | undefined> {
  try {
    await checkRanges({ dataDir, instance: dataDir, podCidr, serviceCidr, signal });
  } catch (error) {
    if (error instanceof RangeOfOtherEngineError) return error;
  }
  return undefined;
}

/** Rejects with a UserError if this machine cannot use the ranges, which cannot be changed once they are recorded. */
async function checkNewRanges(
  settings: StartSettings,
  record: EngineRecord | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { dataDir, podCidr, serviceCidr } = settings;
  if (podCidr === record?.podCidr && serviceCidr === record.serviceCidr) return;
  await checkRanges({ dataDir, instance: dataDir, podCidr, serviceCidr, signal }).catch(async (error: unknown) => {
    const isOfOther = error instanceof RangeOfOtherEngineError;
    // The message about a route of another program is sufficient, except in a session, whose user may be unable to give a range.
    if (!isOfOther && !(error instanceof RangeTakenError && settings.forSessions === true)) throw error;
    const { overlap, option } = error;
    throw new UserError(`${overlap}: ${await startBeside(settings, record, option, `choose another with ${option}`)}`);
  });
  await checkOtherEngines(settings, record, signal);
}

/**
 * Rejects with a UserError if a range overlaps the Service range of another engine, because the rules of that engine would drop packets to
 * Pods or Services.
 */
async function checkOtherEngines(
  settings: StartSettings,
  record: EngineRecord | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { dataDir, podCidr, serviceCidr } = settings;
  const { table } = networkNames({ dataDir, instance: dataDir });
  const own = [
    { what: 'Pod', text: podCidr, option: '--pod-cidr' as const },
    { what: 'Service', text: serviceCidr, option: '--service-cidr' as const },
  ].map((each) => ({ ...each, ranges: each.text.split(',').map((text) => parseIpRange(text) as IpRange) }));
  for (const other of await otherServiceRanges({ name: table, signal })) {
    const taken = own.find(({ ranges }) => ranges.some(other.overlaps));
    if (taken === undefined) continue;
    const { what, text, option } = taken;
    const advice = await startBeside(settings, record, option, `choose another with ${option}`);
    throw new UserError(
      `the ${what} range ${text} overlaps the Service range ${other.text} of another engine of lifepod on this ` +
        `machine, with the nftables table ${other.table}: ${advice}`,
    );
  }
}

/**
 * Logs the warnings about the machine's packet filter, and resolves with them; with none if the machine's own runtime is used, or if the
 * packet filter cannot be examined: the engine can run nevertheless.
 */
export async function networkWarnings(settings: Settings, { log }: Platform, signal: AbortSignal): Promise<string[]> {
  if (settings.containerRuntimeEndpoint !== undefined) return [];
  const warnings = await forwardWarnings(settings.podCidr.split(','), { name: '', signal }).catch((error: unknown) => {
    if (!signal.aborted) log.warn('the packet filter of the machine cannot be examined', { error: String(error) });
    return [];
  });
  for (const warning of warnings) log.warn(warning);
  return warnings;
}

export const apiAt = (settings: Settings, port: number): ApiAddresses => ({ ips: listenAddresses(settings), port });

/** Recorded ranges cannot be changed, so the error must not advise another range. Returns errors other than a RangeTakenError unchanged. */
export function ofRecordedRange(error: unknown, dataDir: string): unknown {
  if (!(error instanceof RangeTakenError)) return error;
  const remedy =
    error instanceof RangeOfOtherEngineError
      ? `end that engine with ${downOfOther(error)}`
      : 'remove the route, for example by disconnecting the VPN or network that has added it';
  return new UserError(
    `${error.overlap}, and the ranges that ${dataDir} was created with cannot change: ${remedy}, or choose another --data-dir`,
  );
}

/**
 * Returns, as the end of a sentence, the command that ends the other engine. If none of `running` is that engine, only a hash of the path
 * of its data folder is known, and `unknown` says which folder to give.
 */
export function downOfOther(
  { bridge }: RangeOfOtherEngineError,
  unknown = 'its data folder',
  running: readonly Pick<EngineProcess, 'dataDir'>[] = engineProcesses(),
): string {
  const dataDir = running
    .flatMap((each) => each.dataDir ?? [])
    .find((folder) => networkNames({ dataDir: folder, instance: folder }).bridge === bridge);
  if (dataDir !== undefined) return `'${rootCommand('down', dataDir)}'`;
  return `'${rootProgram()} down --data-dir FOLDER', with ${unknown} as FOLDER`;
}

/** Rejects like setUpNetwork(). Replaces the error about a route that overlaps a range: see ofRecordedRange(). */
export function startNetwork(settings: Settings, platform: Platform, signal: AbortSignal): Promise<PodNetwork> {
  const { dataDir, podCidr, serviceCidr, port, containerRuntimeEndpoint } = settings;
  return setUpNetwork({
    dataDir,
    instance: dataDir,
    podCidr,
    serviceCidr,
    serviceIps: [dnsServiceAddress(serviceCidr), kubernetesServiceAddress(serviceCidr)],
    ...(port === 0 ? {} : { api: apiAt(settings, port) }),
    hasForeignPods: containerRuntimeEndpoint !== undefined,
    pluginDirectory: findCniFolder(),
    ...platform,
    signal,
  }).catch((error: unknown) => {
    throw ofRecordedRange(error, dataDir);
  });
}
