import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseIp } from '../../machinery/ip.ts';
import { type Instance, ipamDirectory, networkNames } from './names.ts';

/** Resolves with the sandbox IDs by leased address. The map is empty if the folder of the leases cannot be read. */
export async function leasedAddresses(options: Instance): Promise<Map<string, string>> {
  const folder = join(ipamDirectory(options.dataDir), networkNames(options).network);
  const leases = new Map<string, string>();
  for (const entry of await readdir(folder).catch(() => [])) {
    // Other files of the folder are the lock and the last reserved address.
    if (parseIp(entry) === undefined) continue;
    const [id] = (await readFile(join(folder, entry), 'utf8')).split(/\s/);
    if (id !== undefined) leases.set(entry, id);
  }
  return leases;
}
