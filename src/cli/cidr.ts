/** IPv4 address ranges of the command line: parsing, overlap, and the choice of free ones. */
import { randomInt } from 'node:crypto';
import { networkInterfaces } from 'node:os';
import { UserError } from '../platform/files.ts';
import { runCommand } from '../platform/processes.ts';

export interface Cidr {
  text: string;
  /** First address, as a number. */
  first: number;
  /** Last address, as a number. */
  last: number;
  prefixLength: number;
}

export function parseCidr(text: string): Cidr | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(text);
  if (match === null) return undefined;
  const numbers = match.slice(1).map(Number);
  const prefixLength = numbers.pop() ?? 0;
  if (prefixLength > 32 || numbers.some((part) => part > 255)) return undefined;
  const address = numbers.reduce((sum, part) => sum * 256 + part, 0);
  const size = 2 ** (32 - prefixLength);
  if (address % size !== 0) return undefined;
  return { text, first: address, last: address + size - 1, prefixLength };
}

export const overlaps = (a: Cidr, b: Cidr): boolean => a.first <= b.last && b.first <= a.last;

/** The address at the offset, dotted. */
export function addressAt(cidr: Cidr, offset: number): string {
  const value = cidr.first + offset;
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.');
}

/** Checks an option such as --pod-cidr: a network of a size between /8 and the smallest useful one. */
export function requireCidr(option: string, text: string, longestPrefix: number): Cidr {
  const cidr = parseCidr(text);
  if (cidr === undefined) {
    throw new UserError(`${option} ${text} is not an IPv4 network: give one such as 10.222.0.0/16`);
  }
  if (cidr.prefixLength > longestPrefix || cidr.prefixLength < 8) {
    throw new UserError(`${option} ${text} has an unusable size: give a network between /8 and /${longestPrefix}`);
  }
  return cidr;
}

/** A range that this machine already reaches, and by what. */
export interface UsedRange {
  cidr: Cidr;
  device: string;
}

interface Route {
  dst?: string;
  dev?: string;
}

/** The machine's own networks and routes, but for the default route. */
export async function usedRanges(): Promise<UsedRange[]> {
  const used: UsedRange[] = [];
  for (const [device, addresses] of Object.entries(networkInterfaces())) {
    for (const { family, address } of addresses ?? []) {
      const cidr = family === 'IPv4' ? parseCidr(`${address}/32`) : undefined;
      if (cidr !== undefined) used.push({ cidr, device });
    }
  }
  const routes = await runCommand('ip', ['-j', '-4', 'route', 'show', 'table', 'all']);
  if (routes.code !== 0) return used;
  for (const { dst, dev } of JSON.parse(routes.stdout || '[]') as Route[]) {
    const cidr = dst === undefined ? undefined : parseCidr(dst.includes('/') ? dst : `${dst}/32`);
    if (cidr !== undefined && cidr.prefixLength > 0) used.push({ cidr, device: dev ?? 'a route' });
  }
  return used;
}

/** Throws a UserError where the machine already uses a part of the range. */
export function requireUnused(option: string, cidr: Cidr, used: readonly UsedRange[]): void {
  const clash = used.find((range) => overlaps(range.cidr, cidr));
  if (clash === undefined) return;
  throw new UserError(
    `${option} ${cidr.text} overlaps ${clash.cidr.text}, which this machine reaches through ${clash.device}: ` +
      `choose another ${option}`,
  );
}

/** A Pod range and a Service range, both /24, that nothing on this machine uses. */
export async function chooseFreeRanges(): Promise<{ podCidr: string; serviceCidr: string }> {
  const used = await usedRanges();
  const chosen: string[] = [];
  for (let tries = 0; tries < 1000 && chosen.length < 2; tries++) {
    const cidr = parseCidr(`10.${randomInt(128, 220)}.${randomInt(0, 256)}.0/24`) as Cidr;
    if (used.some((range) => overlaps(range.cidr, cidr))) continue;
    used.push({ cidr, device: 'chosen' });
    chosen.push(cidr.text);
  }
  const [podCidr, serviceCidr] = chosen;
  if (podCidr === undefined || serviceCidr === undefined) {
    throw new UserError(
      'no free network was found in 10.128.0.0 to 10.219.255.255: give --pod-cidr and --service-cidr',
    );
  }
  return { podCidr, serviceCidr };
}
