/**
 * The node's address as the machine moves between networks: looked up again when the machine has other addresses than before,
 * and as long as it has no way to the world.
 */
import { networkInterfaces } from 'node:os';
import { nodeAddress } from './machine-checks.ts';

export interface NodeAddress {
  /** One address. The list is shared by all who tell of it or ask at it, and is changed in place. */
  readonly ips: readonly string[];
  /** Looks whether it is still so. */
  read(): Promise<string>;
}

export interface AddressSource {
  /** The machine's address to the world, where it has a way there. */
  find(): Promise<string | undefined>;
  /** In place of it. */
  fallback: string;
  /** All that the machine has. */
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
      // A machine that starts may have its address before it has a way to the world.
      if (now !== seen || ips[0] === fallback) {
        ips[0] = (await find()) ?? fallback;
        seen = now;
      }
      return ips[0] as string;
    },
  };
}
