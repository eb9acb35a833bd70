/** What of the system an engine may leave behind, as names: a test compares before and after. */
import { existsSync, readdirSync } from 'node:fs';
import { mountsOf, processesNaming } from '../../src/cli/leftovers.ts';
import { runCommandOk } from '../../src/platform/processes.ts';

const NETNS_FOLDER = '/run/netns';

interface NftObject {
  table?: { family: string; name: string };
}

/** Network namespaces, links and nftables tables of the machine, each as one line. */
export async function networkState(): Promise<Set<string>> {
  const namespaces = existsSync(NETNS_FOLDER) ? readdirSync(NETNS_FOLDER) : [];
  const links = JSON.parse(await runCommandOk('ip', ['-j', 'link', 'show'])) as { ifname: string }[];
  const nft = JSON.parse(await runCommandOk('nft', ['-j', 'list', 'tables'])) as { nftables: NftObject[] };
  const tables = nft.nftables.flatMap((entry) => (entry.table === undefined ? [] : [entry.table]));
  return new Set([
    ...namespaces.map((name) => `network namespace ${name}`),
    ...links.map((link) => `link ${link.ifname}`),
    ...tables.map((table) => `nftables table ${table.family} ${table.name}`),
  ]);
}

/** Processes, mounts and network parts that are there now and were not in `before`. */
export async function leaks(dataDir: string, before: ReadonlySet<string>): Promise<string[]> {
  const network = await networkState();
  return [
    ...processesNaming(dataDir)
      .filter(({ commandLine }) => !commandLine.some((argument) => argument.endsWith('guardian.ts')))
      .map(({ pid, commandLine }) => `process ${pid} ${commandLine.join(' ')}`),
    ...mountsOf(dataDir).map((point) => `mount ${point}`),
    ...[...network].filter((entry) => !before.has(entry)),
  ];
}
