/**
 * The node's address, which changes when the machine moves between networks. It is looked up again when the addresses of the machine
 * have changed, and as long as there is no default route.
 */
import { networkInterfaces } from 'node:os';
import { nodeAddress } from './machine-checks.ts';

export interface NodeAddress {
  /** The one address. Its users share the list, which is updated in place. */
  readonly ips: readonly string[];
  /** Updates the address if necessary and resolves with it. */
  read(): Promise<string>;
}

export interface AddressSource {
  /** The source address of the machine's default route; undefined if there is no default route. */
  find(): Promise<string | undefined>;
  /** Used if there is no default route. */
  fallback: string;
  /** All addresses of the machine. */
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
      // While a machine boots, it may have its address before its default route.
      if (now !== seen || ips[0] === fallback) {
        ips[0] = (await find()) ?? fallback;
        seen = now;
      }
      return ips[0] as string;
    },
  };
}
