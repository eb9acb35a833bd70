/**
 * Finds the node's address, which changes when the machine moves between networks. The address is looked up again after the machine's
 * addresses have changed, and as long as the machine has no default route.
 */
import { networkInterfaces } from 'node:os';
import { nodeAddress } from './machine-checks.ts';

export interface NodeAddress {
  /** A list of one element, the current address. read() updates the list in place, so that every part that holds it sees the change. */
  readonly ips: readonly string[];
  /** Looks the address up again if necessary, and resolves with the current address. */
  read(): Promise<string>;
}

export interface AddressSource {
  /** Resolves with the source address of the machine's default route; undefined if there is no default route. */
  find(): Promise<string | undefined>;
  /** The address of the node if the machine has no default route. */
  fallback: string;
  /** Returns the IPv4 addresses of the machine, except those of loopback interfaces. */
  all(): string[];
}

export const machineAddresses = (fallback: string, signal: AbortSignal): AddressSource => ({
  find: () => nodeAddress(signal),
  fallback,
  all: () =>
    Object.values(networkInterfaces())
      .flatMap((addresses) => addresses ?? [])
      .filter(({ family, internal }) => family === 'IPv4' && !internal)
      .map(({ address }) => address),
});

export async function openNodeAddress({ find, fallback, all }: AddressSource): Promise<NodeAddress> {
  const present = (): string => all().sort().join();
  let seen = present();
  const ips = [(await find()) ?? fallback];
  return {
    ips,
    async read() {
      const now = present();
      // A booting machine may get its address before its default route, so the address is looked up again as long as it is the fallback.
      if (now !== seen || ips[0] === fallback) {
        ips[0] = (await find()) ?? fallback;
        seen = now;
      }
      return ips[0] as string;
    },
  };
}
