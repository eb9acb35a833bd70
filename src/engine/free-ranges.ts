/** Checks the address ranges given on the command line, and chooses free ranges. */

import { randomInt } from 'node:crypto';
import { formatIpRange, type IpFamily, type IpRange, parseIp, parseIpRange, rangesOverlap } from '../machinery/ip.ts';
import { UserError } from '../platform/files.ts';
import { runCommandOk } from '../platform/processes.ts';

interface RangesOption {
  name: string;
  /** Two ranges that are valid. */
  example: string;
  /** The shortest and the longest prefix of a range of each family. */
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

/** Returns the range or the two ranges of --pod-cidr, IPv4 first. Throws a UserError if the text is something else. */
export const requirePodRanges = (text: string): IpRange[] => requireRanges(PODS, text);

/** Returns the range or the two ranges of --service-cidr, IPv4 first. Throws a UserError if the text is something else. */
export const requireServiceRanges = (text: string): IpRange[] => requireRanges(SERVICES, text);

/**
 * Returns the IPv4 range of the text, and the IPv6 range that may follow it after a comma. IPv4 is first, because the API server listens on
 * an IPv4 address, so that the first address of Pods, of Services and of the node is one, too.
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
    if (range.prefixLength >= shortest && range.prefixLength <= longest) continue;
    throw new UserError(
      `${name} ${formatIpRange(range)} has an unusable size: give an ${range.family} network between /${shortest} and /${longest}`,
    );
  }
  return ranges;
}

/** Resolves with the IPv4 ranges to which this machine has routes, without the default route. */
async function usedRanges(): Promise<IpRange[]> {
  const routes = JSON.parse(await runCommandOk('ip', ['-json', '-4', 'route', 'show', 'table', 'all'])) as {
    dst: string;
  }[];
  return routes.flatMap(({ dst }) => parseIpRange(parseIp(dst) === undefined ? dst : `${dst}/32`) ?? []);
}

/** Resolves with a Pod and a Service range, both /24, to which only a default route leads. Rejects with a UserError if it finds none. */
export async function chooseFreeRanges(): Promise<{ podCidr: string; serviceCidr: string }> {
  const used = (await usedRanges()).filter((range) => range.prefixLength > 0);
  const choose = (): string => {
    for (let tries = 0; tries < 1000; tries++) {
      const text = `10.${randomInt(128, 220)}.${randomInt(0, 256)}.0/24`;
      const range = parseIpRange(text) as IpRange;
      if (used.some((other) => rangesOverlap(other, range))) continue;
      used.push(range);
      return text;
    }
    throw new UserError(
      'no free network was found in 10.128.0.0 to 10.219.255.255: give --pod-cidr and --service-cidr',
    );
  };
  return { podCidr: choose(), serviceCidr: choose() };
}
