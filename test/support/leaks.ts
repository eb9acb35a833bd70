/** Detects leaks: a test lists an engine's resources on the machine while the engine runs, and later checks that none of them is left. */
import { mountsOf, processesNaming } from '../../src/engine/leftovers.ts';
import { readAttachments } from '../../src/network/pod-network/attachments.ts';
import { networkNames } from '../../src/network/pod-network/names.ts';
import { runCommand } from '../../src/platform/processes.ts';

/** Lists the engine's bridge, the interfaces of its Pods and its nftables table. watchLeaks() lists network namespaces as mounts in the data folder. */
async function networkParts(dataDir: string): Promise<string[]> {
  const { bridge, table, network } = networkNames({ dataDir, instance: dataDir });
  const attachments = [...(await readAttachments(network)).values()];
  return [`link ${bridge}`, `table inet ${table}`, ...attachments.map(({ link }) => `link ${link}`)];
}

async function exists(part: string): Promise<boolean> {
  const [kind = '', ...name] = part.split(' ');
  if (kind === 'link') return (await runCommand('ip', ['link', 'show', 'dev', ...name])).code === 0;
  return (await runCommand('nft', ['list', 'table', ...name])).code === 0;
}

export interface LeakWatch {
  /** The network parts, processes and mounts that existed when watchLeaks() was called, one per line. */
  parts: string[];
  /** Resolves with the network parts that still exist, and all processes and mounts that exist now. */
  left(): Promise<string[]>;
}

export async function watchLeaks(dataDir: string): Promise<LeakWatch> {
  const network = await networkParts(dataDir);
  const now = (): string[] => [
    ...processesNaming(dataDir).map(({ pid, commandLine }) => `process ${pid} ${commandLine.join(' ')}`),
    ...mountsOf(dataDir).map((point) => `mount ${point}`),
  ];
  return {
    parts: [...network, ...now()],
    async left() {
      const there = await Promise.all(network.map(exists));
      return [...now(), ...network.filter((_, index) => there[index])];
    },
  };
}
