/**
 * The names that an instance gives to the parts of its network. They contain a hash of the instance, or are paths below its data folder, so
 * instances share no part.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';

export interface Instance {
  dataDir: string;
  /** Distinguishes this engine from other engines on the machine, for example by the path of its data folder. */
  instance: string;
}

export interface NetworkNames {
  /** The interface that has the node's addresses in the Pod network. The name has at most 15 characters. */
  bridge: string;
  /** The nftables table, in the family inet. */
  table: string;
  network: string;
  cniConfigDirectory: string;
}

export function networkNames({ dataDir, instance }: Instance): NetworkNames {
  const hash = createHash('sha256').update(instance).digest('hex').slice(0, 8);
  return {
    bridge: `lp${hash}`,
    table: `lifepod-${hash}`,
    network: `lifepod-${hash}`,
    cniConfigDirectory: join(dataDir, 'cni', 'net.d'),
  };
}

export const cniConfigurationPath = (instance: Instance): string =>
  join(networkNames(instance).cniConfigDirectory, '10-lifepod.conflist');

/** The folder in which the CNI plugin host-local records the addresses that it has assigned. */
export const ipamDirectory = (dataDir: string): string => join(dataDir, 'cni', 'networks');
