import { readFile } from 'node:fs/promises';
import {
  bitsOf,
  formatIp,
  formatIpRange,
  type IpRange,
  parseIp,
  parseIpRange,
  rangesOverlap,
} from '../../machinery/ip.ts';
import { UserError } from '../../platform/files.ts';
import { readAttachments } from './attachments.ts';
import { leasedAddresses } from './leases.ts';
import { type Route, readRoutes } from './links.ts';
import { cniConfigurationPath, type Instance, networkNames } from './names.ts';
import type { PodRange } from './rules.ts';

export type RangeOption = '--pod-cidr' | '--service-cidr';

export class RangeTakenError extends UserError {
  /** The beginning of the message, which names the overlapping ranges. */
  readonly overlap: string;
  readonly option: RangeOption;
  constructor(overlap: string, option: RangeOption) {
    super(`${overlap}: choose another with ${option}`);
    this.overlap = overlap;
    this.option = option;
  }
}

export class RangeOfOtherEngineError extends RangeTakenError {
  /** The name of the other engine's bridge. */
  readonly bridge: string;
  constructor(overlap: string, option: RangeOption, bridge: string) {
    super(overlap, option);
    this.bridge = bridge;
  }
}

const BRIDGE = /^lp[\da-f]{8}$/;

const isBridge = ({ dev = '' }: Route): boolean => BRIDGE.test(dev);

export interface RangeOptions extends Instance {
  podCidr: string;
  /** The ranges of Services. Absent: only the Pod ranges are checked. */
  serviceCidr?: string;
  signal: AbortSignal;
}

export interface PodNetworkRange extends PodRange {
  gateway: string;
}

/** The first range is of IPv4. */
export type PodNetworkRanges = [PodNetworkRange, ...PodNetworkRange[]];

/** Parses ranges that are separated by a comma. Throws if they are not an IPv4 range and at most one IPv6 range. */
export function podRanges(text: string): PodNetworkRanges {
  const [first, ...others] = parseRanges(text).map((range) => ({
    family: range.family,
    cidr: formatIpRange(range),
    gateway: formatIp({ family: range.family, value: range.base + 1n }),
  }));
  if (first?.family !== 'IPv4' || others.length > 1 || others[0]?.family === 'IPv4') {
    throw new Error(`${JSON.stringify(text)} is not an IPv4 range, which an IPv6 range may follow`);
  }
  return [first, ...others];
}

function parseRanges(text: string): IpRange[] {
  return text.split(',').map((part) => {
    const range = parseIpRange(part);
    if (range === undefined) throw new Error(`${JSON.stringify(part)} is not a range such as 10.244.0.0/24`);
    return range;
  });
}

/** Resolves with the Pod ranges in the instance's CNI configuration; an empty list if there is no configuration. */
export async function configuredRanges(instance: Instance): Promise<IpRange[]> {
  const text = await readFile(cniConfigurationPath(instance), 'utf8').catch(() => '{}');
  const { plugins = [] } = JSON.parse(text) as { plugins?: { ipam?: { ranges: { subnet: string }[][] } }[] };
  const subnets = plugins.flatMap(({ ipam }) => ipam?.ranges ?? []).flat();
  return subnets.flatMap(({ subnet }) => parseIpRange(subnet) ?? []);
}

/**
 * Rejects with a UserError if a Pod range is too small, if a Pod range and a Service range overlap, if a range overlaps a route that does
 * not belong to the instance, or if the machine has no IPv6 for an IPv6 Pod range.
 */
export async function checkRanges(options: RangeOptions): Promise<void> {
  const { podCidr, serviceCidr } = options;
  const pods = parseRanges(podCidr);
  for (const range of pods) {
    const longest = bitsOf(range.family) - 2;
    if (range.prefixLength <= longest) continue;
    throw new UserError(
      `the Pod range ${formatIpRange(range)} is too small: choose a prefix length of at most /${longest} with --pod-cidr`,
    );
  }
  const ipv6 = pods.find(({ family }) => family === 'IPv6');
  if (ipv6 !== undefined) await requireIpv6(ipv6);
  const services = serviceCidr === undefined ? [] : parseRanges(serviceCidr);
  const overlapsAny = (ranges: readonly IpRange[], other: IpRange): boolean =>
    ranges.some((range) => rangesOverlap(range, other));
  if (services.some((range) => overlapsAny(pods, range))) {
    throw new UserError(
      `the Pod range ${podCidr} and the Service range ${serviceCidr} overlap: choose another --pod-cidr or --service-cidr`,
    );
  }
  const routes = await foreignRoutes(options);
  // A message about the bridge of another engine explains more than one about the interfaces of its Pods.
  for (const each of [...routes.filter(isBridge), ...routes.filter((one) => !isBridge(one))]) {
    const { dst, dev = 'unknown' } = each;
    const route = printedRange(dst);
    if (route === undefined) continue;
    const taken = overlapsAny(pods, route)
      ? { what: 'Pod', range: podCidr, option: '--pod-cidr' as const }
      : overlapsAny(services, route)
        ? { what: 'Service', range: serviceCidr, option: '--service-cidr' as const }
        : undefined;
    if (taken !== undefined) {
      const overlap = `the ${taken.what} range ${taken.range} overlaps the route ${dst} of the interface ${dev}`;
      if (!isBridge(each)) throw new RangeTakenError(overlap, taken.option);
      throw new RangeOfOtherEngineError(`${overlap} of another engine of lifepod`, taken.option, dev);
    }
  }
}

/**
 * Resolves with the routes that do not belong to the instance. While the runtime attaches or detaches a sandbox, the sandbox has a record
 * or a leased address: libcni deletes the record after the interface, and host-local leases the address before the interface exists.
 * Therefore the records are read before the routes, and the leases after them.
 */
async function foreignRoutes(options: RangeOptions): Promise<Route[]> {
  const { podCidr, signal } = options;
  const { bridge, network } = networkNames(options);
  const attachments = await readAttachments(network);
  const links = new Set([bridge, ...[...attachments.values()].map(({ link }) => link)]);
  const routes = await readRoutes(signal);
  // The kernel has a route for the IPv6 gateway on each interface of a Pod.
  const own = new Set([
    'default',
    ...(await leasedAddresses(options)).keys(),
    ...podRanges(podCidr).map(({ gateway }) => gateway),
  ]);
  // Routes of Service ranges of other engines are left out: otherServiceRanges() reads these ranges from the rules of the engines.
  return routes.filter(
    (route) => !own.has(route.dst) && !links.has(route.dev ?? '') && (!isBridge(route) || route.protocol === 'kernel'),
  );
}

/** Rejects if IPv6 is disabled by default, because the interfaces of Pods get the default settings of the machine. */
async function requireIpv6(range: IpRange): Promise<void> {
  const disabled = await readFile('/proc/sys/net/ipv6/conf/default/disable_ipv6', 'utf8').catch(() => '1');
  if (disabled.trim() === '0') return;
  throw new UserError(
    `the Pod range ${formatIpRange(range)} needs IPv6, which this machine has disabled: set the sysctl net.ipv6.conf.default.disable_ipv6 to 0, or give only an IPv4 range with --pod-cidr`,
  );
}

/** Parses a range that ip(8) or nft(8) has printed: in CIDR notation, or as a single address. Returns undefined for another text. */
export function printedRange(text: string): IpRange | undefined {
  const ip = parseIp(text);
  return ip === undefined ? parseIpRange(text) : { family: ip.family, base: ip.value, prefixLength: bitsOf(ip.family) };
}
