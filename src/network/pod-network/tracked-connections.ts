/**
 * Deletes entries of connection tracking for the connections of Pods that have been removed. The kernel keeps these entries: entries of TCP
 * for days, and entries of UDP as long as the client sends. While other programs have rules of the type nat, the kernel continues to
 * translate the packets of these entries: they leave the machine instead of reaching the program that has the port now.
 */
import { type IpRange, parseIp, rangeContains } from '../../machinery/ip.ts';
import { linesOf, runCommand } from '../../platform/processes.ts';
import { CONNTRACK_FAMILY, FAMILIES } from '../families.ts';

/** Deletes the entries of connections from and to addresses in the ranges. Rejects if conntrack(8) fails. */
export async function forgetConnections(ranges: readonly IpRange[], signal: AbortSignal): Promise<void> {
  for (const family of FAMILIES) {
    const own = ranges.filter((range) => range.family === family);
    if (own.length === 0) continue;
    const select = ['--family', CONNTRACK_FAMILY[family]];
    const found = new Set<string>();
    for await (const lines of linesOf('conntrack', ['--dump', ...select], { signal })) {
      for (const criterion of lines.flatMap((line) => criteriaOf(line, own))) found.add(criterion);
    }
    // The exit code is ignored: it is not 0 if the entries have already expired.
    for (const criterion of found)
      await runCommand('conntrack', ['--delete', ...select, ...criterion.split(' ')], { signal });
  }
}

/**
 * Returns options of conntrack(8) that select the entry in a line of its output; none if neither the client nor the server is in a range.
 */
export function criteriaOf(line: string, ranges: readonly IpRange[]): string[] {
  // The source of replies is the server, after the translation of its address.
  const [client, server] = [...line.matchAll(/\bsrc=(\S+)/g)].map(([, address = '']) => address);
  const isOwn = (address = ''): boolean => {
    const ip = parseIp(address);
    return ip !== undefined && ranges.some((range) => rangeContains(range, ip));
  };
  return [...(isOwn(client) ? [`--orig-src ${client}`] : []), ...(isOwn(server) ? [`--reply-src ${server}`] : [])];
}
