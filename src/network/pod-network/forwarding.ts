/**
 * Lets the machine forward packets between Pods and other machines. The sysctls are never reset, because other programs may have come to
 * rely on forwarding. A change of ip_forward also changes other sysctls, such as accept_redirects, which the administrator may have set
 * since.
 */
import { readFile, writeFile } from 'node:fs/promises';
import type { IpFamily } from '../../machinery/ip.ts';
import { UserError } from '../../platform/files.ts';
import { readRoutes } from './links.ts';

const SYSCTLS: Readonly<Record<IpFamily, string>> = {
  IPv4: 'net/ipv4/ip_forward',
  IPv6: 'net/ipv6/conf/all/forwarding',
};

/** Enables forwarding for these IP families. Rejects with a UserError on failure. */
export async function enableForwarding(families: readonly IpFamily[], signal: AbortSignal): Promise<void> {
  for (const family of families) {
    const sysctl = SYSCTLS[family];
    const path = `/proc/sys/${sysctl}`;
    try {
      // In a container, the file may be read-only although forwarding is already enabled.
      if ((await readFile(path, 'utf8')).trim() === '1') continue;
      if (family === 'IPv6') await keepRouterAdvertisements(signal);
      await writeFile(path, '1');
    } catch (error) {
      throw new UserError(
        `${family} forwarding cannot be enabled: ${(error as Error).message}; set the sysctl ${sysctl.replaceAll('/', '.')} to 1`,
      );
    }
  }
}

/**
 * Lets interfaces whose default route comes from router advertisements continue to accept these: a kernel that forwards packets accepts
 * them only if accept_ra is 2. Other interfaces, such as the interfaces of containers, must not get this permission. Source: ip-sysctl of
 * the kernel.
 */
async function keepRouterAdvertisements(signal: AbortSignal): Promise<void> {
  const routes = await readRoutes(signal);
  const learned = routes.filter(({ dst, protocol }) => dst === 'default' && protocol === 'ra');
  for (const link of new Set(learned.flatMap(({ dev }) => dev ?? []))) {
    const path = `/proc/sys/net/ipv6/conf/${link}/accept_ra`;
    if ((await readFile(path, 'utf8')).trim() === '1') await writeFile(path, '2');
  }
}
