/** Address ranges: checks those given on the command line, and chooses free ones. */
import { randomInt } from 'node:crypto';
import { type Cidr, formatCidr, formatIpv4, overlaps, parseCidr, parseIpv4, tryParseCidr } from '../machinery/cidr.ts';
import { UserError } from '../platform/files.ts';
import { runCommandOk } from '../platform/processes.ts';

/** Checks an option such as --pod-cidr: a network between /8 and `longestPrefix`. */
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

/** The address at the offset: 1 is the first after the network's own. */
export const addressAt = (cidr: Cidr, offset: number): string => formatIpv4(cidr.base + offset);

/** Ranges that this machine has routes to. */
async function usedRanges(): Promise<Cidr[]> {
  const routes = JSON.parse(await runCommandOk('ip', ['-json', '-4', 'route', 'show', 'table', 'all'])) as {
    dst: string;
  }[];
  return routes.flatMap(({ dst }) => tryParseCidr(parseIpv4(dst) === undefined ? dst : `${dst}/32`) ?? []);
}

/** A Pod range and a Service range, both /24, that nothing on this machine uses. */
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
