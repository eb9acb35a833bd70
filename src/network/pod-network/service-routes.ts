/**
 * The routes of the Service ranges, which lead to the bridge. The kernel looks for a route before the rules for Services see a packet of
 * the machine, and before they reject a packet of a Pod: without these routes, a machine without a default route could not reach cluster
 * IPs. No packet leaves through the routes, because the rules translate, reject or drop it.
 *
 * Invariants: a route of another program to the same range has priority. The routes disappear with the bridge.
 */
import { formatIpRange, type IpFamily, type IpRange, parseIpRange } from '../../machinery/ip.ts';
import type { Log } from '../../platform/platform.ts';
import { familyOf } from '../families.ts';
import { type Route, readRoutes, runIp } from './links.ts';
import { printedRange } from './ranges.ts';

/** The protocol of these routes, which distinguishes them from the routes that the kernel adds for addresses of the bridge. */
const PROTOCOL = 'static';

/**
 * The metric is larger than the metrics of other programs, and differs between bridges: the kernel replaces a route with the same
 * destination and metric even if it leads to another interface, such as the bridge of another engine.
 */
export const metricOf = (bridge: string): number => 100_000 + (Number.parseInt(bridge.slice(2), 16) % 1_000_000);

export function otherRoutes(routes: readonly Route[], bridge: string, cidrs: readonly string[]): Route[] {
  const wanted = new Set(cidrs.map((cidr) => textOf(parseIpRange(cidr)) ?? cidr));
  return routes.filter(
    ({ dst, dev, protocol }) =>
      dev === bridge && protocol === PROTOCOL && !wanted.has(textOf(printedRange(dst)) ?? dst),
  );
}

const textOf = (range: IpRange | undefined): string | undefined => range && formatIpRange(range);

export interface ServiceRoutes {
  /**
   * Adds the missing routes of the ranges. Failures are only logged, because most machines have a default route and do not need the routes.
   */
  add(cidrs: readonly string[]): Promise<void>;
  /**
   * Adds the missing routes of the ranges, and deletes the routes of other ranges. Calls take effect in their order. Failures are logged.
   */
  set(cidrs: readonly string[]): Promise<void>;
}

export interface ServiceRouteOptions {
  bridge: string;
  /** The families of the addresses of the bridge. Ranges of other families get no route: a packet would have no source address. */
  families: readonly IpFamily[];
  log: Log;
  signal: AbortSignal;
}

export function createServiceRoutes({ bridge, families, log, signal }: ServiceRouteOptions): ServiceRoutes {
  let last = Promise.resolve();
  const attempt = (change: () => Promise<void>): Promise<void> => {
    last = last.then(change).catch((error: unknown) => {
      if (!signal.aborted) log.warn('cannot change the routes of the Service ranges', { error });
    });
    return last;
  };
  const add = async (cidrs: readonly string[]): Promise<void> => {
    const routed = cidrs.filter((cidr) => families.includes(familyOf(cidr)));
    await runIp(
      routed.map((cidr) => `route replace ${cidr} dev ${bridge} proto ${PROTOCOL} metric ${metricOf(bridge)}`),
      signal,
    );
  };
  const removeOthers = async (cidrs: readonly string[]): Promise<void> => {
    const commands = otherRoutes(await readRoutes(signal), bridge, cidrs).map(
      ({ dst }) => `route delete ${dst} dev ${bridge} proto ${PROTOCOL}`,
    );
    if (commands.length > 0) await runIp(commands, signal);
  };
  return {
    add: (cidrs) => attempt(() => add(cidrs)),
    set: (cidrs) =>
      attempt(async () => {
        await add(cidrs);
        await removeOthers(cidrs);
      }),
  };
}
