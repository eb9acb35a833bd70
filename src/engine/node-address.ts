/**
 * Finds the node's addresses, which change when the machine moves between networks. Looks the addresses up again after the machine's
 * addresses have changed, and as long as the machine has no default route of a family.
 */
import { networkInterfaces } from 'node:os';
import type { IpFamily } from '../machinery/ip.ts';
import { nodeAddress } from './machine-checks.ts';

export interface NodeAddresses {
  /**
   * The IPv4 address, then the IPv6 address if the node has one. read() changes this array itself, so that every component with a reference
   * to it sees the current addresses.
   */
  readonly ips: readonly string[];
  /** Looks the addresses up again if necessary, and resolves with `ips`. */
  read(): Promise<readonly string[]>;
}

export interface AddressSource {
  /** The address families of the Pods. IPv4 is first. */
  families: readonly IpFamily[];
  /** Resolves with the source address of the machine's default route of the family; undefined if there is no such route. */
  find(family: IpFamily): Promise<string | undefined>;
  /** The IPv4 address of the node if the machine has no default route of IPv4. */
  fallback: string;
  /** Returns the machine's addresses of these families, except those of loopback interfaces. */
  all(): string[];
}

export const machineAddresses = (
  families: readonly IpFamily[],
  fallback: string,
  signal: AbortSignal,
): AddressSource => ({
  families,
  find: (family) => nodeAddress(family, signal),
  fallback,
  all: () =>
    Object.values(networkInterfaces())
      .flatMap((addresses) => addresses ?? [])
      .filter(({ family, internal }) => families.includes(family) && !internal)
      .map(({ address }) => address),
});

export async function openNodeAddresses({ families, find, fallback, all }: AddressSource): Promise<NodeAddresses> {
  const present = (): string => [...new Set(all())].sort().join();
  const found = async (): Promise<string[]> => {
    const [first = fallback, ...others] = await Promise.all(families.map(find));
    return [first, ...others.flatMap((address) => address ?? [])];
  };
  let seen = present();
  const ips = await found();
  return {
    ips,
    async read() {
      const now = present();
      // A booting machine may get an address before its default route, so addresses are looked up again until each family has a route.
      if (now !== seen || ips[0] === fallback || ips.length < families.length) {
        ips.splice(0, ips.length, ...(await found()));
        seen = now;
      }
      return ips;
    },
  };
}
