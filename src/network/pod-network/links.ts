import { existsSync } from 'node:fs';
import { runCommand, runCommandOk } from '../../platform/processes.ts';

/**
 * Returns whether the network namespace of this process has the interface. /proc/sys/net shows this namespace; /sys may show another one,
 * for example after `nsenter --net`.
 */
export const hasLink = (name: string): boolean => existsSync(`/proc/sys/net/ipv4/conf/${name}`);

export interface Link {
  ifname: string;
  ifindex: number;
  address: string;
  link_netnsid?: number;
  addr_info?: { family: string; local: string; prefixlen: number }[];
}

/**
 * Resolves with the interfaces that `ip -json ARGS` lists; an empty list if the command fails, for example because the interface does not
 * exist.
 */
export async function readLinks(args: string[], signal: AbortSignal): Promise<Link[]> {
  const { code, stdout } = await runCommand('ip', ['-json', ...args], { signal });
  return code === 0 && stdout.trim() !== '' ? (JSON.parse(stdout) as Link[]) : [];
}

export interface Route {
  /** An address, a range, or `default`. */
  dst: string;
  dev?: string;
  /** The origin of the route, such as `kernel` or `ra`. */
  protocol?: string;
}

/** Resolves with the routes of the main tables of both address families. */
export async function readRoutes(signal: AbortSignal): Promise<Route[]> {
  const read = async (family: string): Promise<Route[]> =>
    JSON.parse(await runCommandOk('ip', ['-json', family, 'route', 'show'], { signal })) as Route[];
  return (await Promise.all(['-4', '-6'].map(read))).flat();
}

/**
 * Runs commands of ip(8), such as `link set NAME up`. `namespace`: the file of a network namespace. Rejects if a command of ip(8) fails.
 */
export async function runIp(commands: readonly string[], signal: AbortSignal, namespace?: string): Promise<void> {
  const options = { input: `${commands.join('\n')}\n`, signal };
  if (namespace === undefined) await runCommandOk('ip', ['-batch', '-'], options);
  else await runCommandOk('nsenter', [`--net=${namespace}`, 'ip', '-batch', '-'], options);
}
