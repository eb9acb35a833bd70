/** Removes the network of an instance from the machine, even if the instance's engine and runtime were killed. */
import { rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { runCommand } from '../../platform/processes.ts';
import { deleteTable } from '../nftables/table.ts';
import { readAttachments, recordsOf } from './attachments.ts';
import { leasedAddresses } from './leases.ts';
import { hasLink, readLinks, readRoutes } from './links.ts';
import { type Instance, networkNames } from './names.ts';
import { configuredRanges } from './ranges.ts';
import { forgetConnections } from './tracked-connections.ts';

export interface TearDownOptions extends Instance {
  runtimeFolder: string;
  signal: AbortSignal;
}

/**
 * Removes the interfaces, namespaces, rules and files of the network. The call may be repeated: missing parts are ignored. Rejects if
 * nft(8) fails or an interface cannot be removed.
 */
export async function tearDownNetwork(options: TearDownOptions): Promise<void> {
  const { signal } = options;
  const names = networkNames(options);
  const attachments = [...(await readAttachments(names.network)).values()];
  const ports = await readLinks(['link', 'show', 'master', names.bridge], signal);
  const links = new Set([
    ...attachments.map(({ link }) => link),
    ...ports.map(({ ifname }) => ifname),
    ...(await linksOfLeases(options, signal)),
  ]);
  for (const { namespace } of attachments) await removeNamespace(namespace, signal);
  const all = [...links, names.bridge];
  const commands = all.map((link) => `link delete ${link}\n`).join('');
  await runCommand('ip', ['-force', '-batch', '-'], { input: commands, signal });
  await deleteTable({ name: names.table, signal });
  // Entries of connection tracking expire in any case, so an error must not prevent the removal of the other parts of the network.
  const forgotten = configuredRanges(options).then((ranges) => forgetConnections(ranges, signal));
  await forgotten.catch(() => signal.throwIfAborted());
  for (const path of await recordsOf(names.network, options.runtimeFolder)) await rm(path, { force: true });
  await rm(join(options.dataDir, 'cni'), { recursive: true, force: true });
  const left = all.filter(hasLink);
  if (left.length > 0) throw new Error(`these interfaces could not be removed: ${left.join(', ')}`);
}

/** Removes the namespace unless it is in the folder of a runtime, which removes it itself. */
async function removeNamespace(path: string, signal: AbortSignal): Promise<void> {
  if (/^\/(var\/)?run\/netns\/cni-/.test(path)) await runCommand('ip', ['netns', 'delete', basename(path)], { signal });
}

/** Resolves with the interfaces to which leased addresses are routed. These include interfaces of which libcni has lost its records. */
async function linksOfLeases(options: Instance, signal: AbortSignal): Promise<string[]> {
  const leases = await leasedAddresses(options);
  if (leases.size === 0) return [];
  const routes = await readRoutes(signal);
  return routes.filter(({ dst }) => leases.has(dst)).flatMap(({ dev }) => dev ?? []);
}
