/** Finds containerd's shims through the files in the bundle folders of their containers. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { readTextIfPresent } from '../../platform/files.ts';
import { CRI_NAMESPACE } from './paths.ts';

export interface Shim {
  /** The container or sandbox to whose bundle folder the shim belongs. */
  containerId: string;
  /** The path of the shim's Unix socket. The containers of one Pod may share a shim and therefore its socket. */
  socket: string;
  /** The version of the shim's task service. */
  version: number;
  protocol: string;
}

/**
 * Returns the shim of each container and sandbox that CRI created, if its bundle folder contains the address of a Unix socket. `state`:
 * containerd's state folder, such as /run/containerd.
 */
export function findBundledShims(state: string): Shim[] {
  const bundles = join(state, 'io.containerd.runtime.v2.task', CRI_NAMESPACE);
  if (!existsSync(bundles)) return [];
  return readdirSync(bundles).flatMap((containerId) => {
    const { address, ...service } = readBundle(join(bundles, containerId));
    if (!address?.startsWith('unix://')) return [];
    return [{ containerId, socket: address.slice('unix://'.length), ...service }];
  });
}

interface Bootstrap {
  address?: string | undefined;
  version: number;
  protocol: string;
}

/**
 * containerd 2.x writes bootstrap.json. If this file is missing (containerd 1.x) or incomplete, reads the address from the file `address`,
 * and returns the version 2 and the protocol ttrpc.
 */
function readBundle(bundle: string): Bootstrap {
  const plain: Bootstrap = { version: 2, protocol: 'ttrpc' };
  try {
    plain.address = readTextIfPresent(join(bundle, 'address'))?.trim();
    const written = JSON.parse(readTextIfPresent(join(bundle, 'bootstrap.json')) ?? '{}') as Record<string, unknown>;
    const { address, version, protocol } = written;
    return typeof address === 'string' && typeof version === 'number' && typeof protocol === 'string'
      ? { address, version, protocol }
      : plain;
  } catch {
    // bootstrap.json is incomplete because containerd was killed while writing the file, or `bundle` is not a folder.
    return plain;
  }
}
