/** Checks the address ranges given on the command line, and chooses free ranges. */

import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { formatIpRange, type IpFamily, type IpRange, parseIp, parseIpRange, rangesOverlap } from '../machinery/ip.ts';
import { otherServiceRanges } from '../network/proxy/other-engines.ts';
import { UserError } from '../platform/files.ts';
import { runCommandOk } from '../platform/processes.ts';

interface RangesOption {
  name: string;
  example: string;
  /** The shortest and the longest prefix, by family. */
  prefixes: Readonly<Record<IpFamily, readonly [number, number]>>;
}

const PODS: RangesOption = {
  name: '--pod-cidr',
  example: '10.222.0.0/16,fd00:10:222::/64',
  prefixes: { IPv4: [8, 28], IPv6: [48, 124] },
};
const SERVICES: RangesOption = {
  name: '--service-cidr',
  example: '10.96.0.0/16,fd00:10:96::/112',
  prefixes: { IPv4: [8, 28], IPv6: [64, 124] },
};

/** The ranges whose addresses neither a Pod nor a Service can have. Source: the special-purpose address registries of IANA. */
const UNUSABLE: readonly { range: string; use: string }[] = [
  { range: '0.0.0.0/8', use: 'the local network' },
  { range: '127.0.0.0/8', use: 'loopback' },
  { range: '169.254.0.0/16', use: 'link-local addresses' },
  { range: '224.0.0.0/3', use: 'multicast and reserved addresses' },
  { range: '::/16', use: 'loopback and embedded IPv4 addresses' },
  { range: 'fe80::/10', use: 'link-local addresses' },
  { range: 'ff00::/8', use: 'multicast' },
];

export const requirePodRanges = (text: string): IpRange[] => requireRanges(PODS, text);

export const requireServiceRanges = (text: string): IpRange[] => requireRanges(SERVICES, text);

/**
 * Returns the IPv4 range of the text, and the IPv6 range that may follow after a comma. IPv4 is required, because the API server listens on
 * an IPv4 address. Throws a UserError if the text has another form, or if a range has an unusable size or overlaps an UNUSABLE one.
 */
function requireRanges({ name, example, prefixes }: RangesOption, text: string): IpRange[] {
  const parts = text.split(',');
  const ranges = parts.flatMap((part) => parseIpRange(part) ?? []);
  const isCanonical = ranges.map(formatIpRange).join() === text;
  if (!isCanonical || ranges.length > 2 || ranges[0]?.family !== 'IPv4' || ranges[1]?.family === 'IPv4') {
    const [ipv4] = example.split(',');
    throw new UserError(
      parts.length === 1
        ? `${name} ${text} is not an IPv4 network: give one such as ${ipv4}, or two such as ${example}`
        : `${name} ${text} is not an IPv4 network followed by an IPv6 network: give two such as ${example}`,
    );
  }
  for (const range of ranges) {
    const [shortest, longest] = prefixes[range.family];
    const isUsable = range.prefixLength >= shortest && range.prefixLength <= longest;
    if (!isUsable)
      throw new UserError(
        `${name} ${formatIpRange(range)} has an unusable size: give an ${range.family} network between /${shortest} and /${longest}`,
      );
    requireUsable(name, range, example);
  }
  return ranges;
}

function requireUsable(name: string, range: IpRange, example: string): void {
  const overlapped = UNUSABLE.find((one) => rangesOverlap(parseIpRange(one.range) as IpRange, range));
  if (overlapped === undefined) return;
  throw new UserError(
    `${name} ${formatIpRange(range)} overlaps ${overlapped.range}, which is for ${overlapped.use}: give a private network such as ${example}`,
  );
}

/** Resolves with whether a route of the machine, other than a default route, or the Service range of an engine overlaps the range. */
async function isUsed(range: IpRange): Promise<boolean> {
  const [output, services] = await Promise.all([
    runCommandOk('ip', ['-json', '-4', 'route', 'show', 'table', 'all']),
    // Errors are ignored: without nft(8), no other engine runs.
    otherServiceRanges({ name: '', signal: AbortSignal.timeout(NFT_MILLIS) }).catch(() => []),
  ]);
  const routes = (JSON.parse(output) as { dst: string }[]).flatMap(
    ({ dst }) => parseIpRange(parseIp(dst) === undefined ? dst : `${dst}/32`) ?? [],
  );
  return (
    routes.some((route) => route.prefixLength > 0 && rangesOverlap(route, range)) ||
    services.some((service) => service.overlaps(range))
  );
}

const NFT_MILLIS = 60_000;

/** Keeps references to the sockets of reserve(), because Node.js may close a socket without references. */
const reservations: Server[] = [];

/**
 * Reserves the range until this process ends; resolves with false if another process has reserved it. Routes and rules show a range only
 * after its engine has started, and several engines may be starting. The reservation is an abstract Unix socket: like a route, it exists in
 * one network namespace, and the kernel removes it when the process ends.
 */
async function reserve(range: string): Promise<boolean> {
  const server = createServer((socket) => socket.destroy()).unref();
  server.listen(`\0lifepod-range-${range}`);
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  reservations.push(server);
  return true;
}

/** Returns a random range from 10.128.0.0 to 10.199.255.255. The tests of the network have fixed ranges from 10.200.0.0. */
const anyRange = (): string => `10.${randomInt(128, 200)}.${randomInt(0, 256)}.0/24`;

/**
 * Resolves with a Pod range and a Service range, both /24, to which only a default route leads, and which no engine of this machine and no
 * process that is starting one uses. This process must run until its engine has started. `candidate` returns a range to try. Rejects with a
 * UserError if 1000 tries find no free range.
 */
export async function chooseFreeRanges(candidate = anyRange): Promise<{ podCidr: string; serviceCidr: string }> {
  const choose = async (): Promise<string> => {
    for (let tries = 0; tries < 1000; tries++) {
      const text = candidate();
      // reserve() must precede isUsed(): when a process that has started an engine gives up its reservation, routes or rules exist already.
      if ((await reserve(text)) && !(await isUsed(parseIpRange(text) as IpRange))) return text;
    }
    throw new UserError(
      'no free network was found in 10.128.0.0 to 10.199.255.255: give --pod-cidr and --service-cidr',
    );
  };
  return { podCidr: await choose(), serviceCidr: await choose() };
}
