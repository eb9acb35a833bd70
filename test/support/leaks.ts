/**
 * Detects leaks: a test lists an engine's resources on the machine while the engine runs, and later checks that none of them is left.
 * test/integration/network-left.test.ts compares the whole network of a machine.
 */
import { mountsOf, processesNaming } from '../../src/engine/leftovers.ts';
import { type IpRange, parseIp, parseIpRange, rangesOverlap } from '../../src/machinery/ip.ts';
import { readAttachments, recordsOf } from '../../src/network/pod-network/attachments.ts';
import { leasedAddresses } from '../../src/network/pod-network/leases.ts';
import { networkNames } from '../../src/network/pod-network/names.ts';
import { configuredRanges } from '../../src/network/pod-network/ranges.ts';
import { runCommand, runCommandOk } from '../../src/platform/processes.ts';
import { containerdPaths } from '../../src/runtime/containerd/paths.ts';

interface Owned {
  dataDir: string;
  links: readonly string[];
  ranges: readonly IpRange[];
}

async function ownedBy(dataDir: string): Promise<Owned> {
  const instance = { dataDir, instance: dataDir };
  const { bridge, network } = networkNames(instance);
  const attachments = [...(await readAttachments(network)).values()];
  const links = [bridge, ...attachments.map(({ link }) => link)];
  return { dataDir, links, ranges: await configuredRanges(instance) };
}

const linesOf = async (command: string, ...args: string[]): Promise<string[]> =>
  (await runCommandOk(command, args)).split('\n').map((line) => line.trim());

function concerns({ links, ranges }: Owned, line: string): boolean {
  const words = line.split(/[\s=]+/);
  return words.some((word) => {
    const ip = parseIp(word);
    const range = parseIpRange(ip === undefined ? word : `${word}/${ip.family === 'IPv4' ? 32 : 128}`);
    const isWhole = range?.prefixLength === 0;
    return links.includes(word) || (range !== undefined && !isWhole && ranges.some((own) => rangesOverlap(own, range)));
  });
}

/** One line per part. */
async function networkParts(owned: Owned): Promise<string[]> {
  const { dataDir, links } = owned;
  const instance = { dataDir, instance: dataDir };
  const { table, network } = networkNames(instance);
  const existing = await Promise.all(
    links.map(async (link) => ((await runCommand('ip', ['link', 'show', 'dev', link])).code === 0 ? [link] : [])),
  );
  const listed = async (kind: string, ...command: [string, ...string[]]): Promise<string[]> =>
    (await linesOf(...command)).filter((line) => concerns(owned, line)).map((line) => `${kind} ${line}`);
  const families = ['-4', '-6'].map(async (family) => [
    ...(await listed('route', 'ip', family, 'route', 'show', 'table', 'all')),
    ...(await listed('rule', 'ip', family, 'rule', 'show')),
  ]);
  const records = await recordsOf(network, containerdPaths(dataDir).run);
  return [
    ...existing.flat().map((link) => `link ${link}`),
    ...(await Promise.all(families)).flat(),
    ...(await linesOf('nft', 'list', 'tables')).filter((line) => line.endsWith(` ${table}`)),
    ...(await listed('connection', 'conntrack', '--dump', '--family', 'ipv4')),
    ...(await listed('connection', 'conntrack', '--dump', '--family', 'ipv6')),
    ...[...(await leasedAddresses(instance)).keys()].map((address) => `lease ${address}`),
    ...records.map((path) => `record ${path}`),
  ];
}

export interface LeakWatch {
  /** The parts that existed when watchLeaks() was called, one per line. Network namespaces are listed as mounts in the data folder. */
  parts: string[];
  /** Resolves with the parts that exist now. */
  left(): Promise<string[]>;
}

export async function watchLeaks(dataDir: string): Promise<LeakWatch> {
  const owned = await ownedBy(dataDir);
  const now = async (): Promise<string[]> => [
    ...(await networkParts(owned)),
    ...processesNaming(dataDir).map(({ pid, commandLine }) => `process ${pid} ${commandLine.join(' ')}`),
    ...mountsOf(dataDir).map((point) => `mount ${point}`),
  ];
  return { parts: await now(), left: now };
}
