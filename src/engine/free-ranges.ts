/** Checks the address ranges given on the command line, and chooses free ranges. */
import { randomInt } from 'node:crypto';
import { type Cidr, formatCidr, formatIpv4, overlaps, parseCidr, parseIpv4, tryParseCidr } from '../machinery/cidr.ts';
import { UserError } from '../platform/files.ts';
import { runCommandOk } from '../platform/processes.ts';

/** Parses the value of an option such as --pod-cidr. Throws a UserError unless it is an IPv4 network from /8 to /`longestPrefix`. */
export function requireCidr(option: string, text: string, longestPrefix: number): Cidr {
  const cidr = tryParseCidr(text);
  if (cidr === undefined || formatCidr(cidr) !== text) {
    throw new UserError(`${option} ${text} is not an IPv4 network: give one such as 10.222.0.0/16`);
  }
  if (cidr.prefixLength > longestPrefix || cidr.prefixLength < 8) {
    throw new UserError(`${option} ${text} has an unusable size: give a network between /8 and /${longestPrefix}`);
  }
  return cidr;
}

/** Returns the address at `offset` in the network: 0 is the network's own address, 1 the next one. */
export const addressAt = (cidr: Cidr, offset: number): string => formatIpv4(cidr.base + offset);

/** Resolves with the IPv4 ranges to which this machine has routes, without the default route. */
async function usedRanges(): Promise<Cidr[]> {
  const routes = JSON.parse(await runCommandOk('ip', ['-json', '-4', 'route', 'show', 'table', 'all'])) as {
    dst: string;
  }[];
  return routes.flatMap(({ dst }) => tryParseCidr(parseIpv4(dst) === undefined ? dst : `${dst}/32`) ?? []);
}

/** Resolves with a Pod and a Service range, both /24, to which only a default route leads. Rejects with a UserError if it finds none. */
export async function chooseFreeRanges(): Promise<{ podCidr: string; serviceCidr: string }> {
  const used = (await usedRanges()).filter((range) => range.prefixLength > 0);
  const choose = (): string => {
    for (let tries = 0; tries < 1000; tries++) {
      const cidr = parseCidr(`10.${randomInt(128, 220)}.${randomInt(0, 256)}.0/24`);
      if (used.some((range) => overlaps(range, cidr))) continue;
      used.push(cidr);
      return formatCidr(cidr);
    }
    throw new UserError(
      'no free network was found in 10.128.0.0 to 10.219.255.255: give --pod-cidr and --service-cidr',
    );
  };
  return { podCidr: choose(), serviceCidr: choose() };
}
