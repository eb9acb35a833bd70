/**
 * The bridge without ports that has the node's addresses in the Pod network. Unlike a Pod's interface, it exists even if there is no Pod.
 */
import { createHash } from 'node:crypto';
import { hasLink, readLinks, runIp } from './links.ts';

/**
 * Creates the bridge if it does not exist, and sets its addresses, IPv4 before IPv6. The first address of a family is the gateway, with the
 * prefix length of the Pod range: the kernel routes the range to the bridge, so that no packet for an unused address leaves the machine.
 */
export async function setUpBridge(bridge: string, addresses: string[], signal: AbortSignal): Promise<void> {
  const isNew = !hasLink(bridge);
  const hash = createHash('sha256').update(bridge).digest('hex');
  const hardware = `02:${(hash.slice(0, 10).match(/../g) ?? []).join(':')}`;
  const present = isNew ? [] : await globalAddresses(bridge, signal);
  await runIp(
    [
      ...(isNew ? [`link add ${bridge} address ${hardware} type bridge`] : []),
      ...(present.join() === addresses.join()
        ? []
        : [
            `address flush dev ${bridge} scope global`,
            // A bridge without ports cannot detect duplicates, so an IPv6 address would stay tentative.
            ...addresses.map((address) => `address add ${address} dev ${bridge} nodad`),
          ]),
      `link set ${bridge} up`,
    ],
    signal,
  );
}

async function globalAddresses(bridge: string, signal: AbortSignal): Promise<string[]> {
  const [link] = await readLinks(['address', 'show', 'dev', bridge, 'scope', 'global'], signal);
  return (link?.addr_info ?? []).map(({ local, prefixlen }) => `${local}/${prefixlen}`);
}
