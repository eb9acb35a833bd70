/** Reads the name servers of the machine. The files are checked before each use, which takes a few microseconds. */
import { statSync } from 'node:fs';
import { isIP } from 'node:net';
import { readTextFile } from '../../platform/folders/text-file.ts';

/** Further servers are ignored. The resolver of the C library uses three at most: resolv.conf(5). */
const MAX_SERVERS = 8;

export interface MachineServers {
  /** In the order of the file. */
  current(): readonly string[];
}

interface ReadFile {
  version: string;
  servers: string[];
}

/**
 * Returns access to the name servers in `file`, a resolv.conf. `behindStubs`: the file in which systemd-resolved lists the servers behind
 * its stub; it is used if `file` lists only loopback addresses. `exclude`: the addresses of the DNS server itself.
 */
export function machineServers(
  file: string,
  behindStubs: string | undefined,
  exclude: readonly string[],
): MachineServers {
  const known = new Map<string, ReadFile>();
  const read = (path: string): string[] => {
    const version = versionOf(path);
    const last = known.get(path);
    if (version !== undefined && last?.version === version) return last.servers;
    known.delete(path);
    const servers = version === undefined ? [] : serversIn(path).filter((server) => !exclude.includes(server));
    if (version !== undefined) known.set(path, { version, servers });
    return servers;
  };
  return {
    current() {
      const servers = read(file);
      if (behindStubs === undefined || servers.length === 0 || !servers.every(isLoopback)) return servers;
      const behind = read(behindStubs);
      return behind.length === 0 ? servers : behind;
    },
  };
}

function versionOf(path: string): string | undefined {
  const stat = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stat === undefined ? undefined : `${stat.ino} ${stat.mtimeNs} ${stat.ctimeNs} ${stat.size}`;
}

function serversIn(path: string): string[] {
  let text: string;
  try {
    text = readTextFile(path);
  } catch {
    return [];
  }
  return text
    .split('\n')
    .map((line) => /^\s*nameserver\s+(\S+)/.exec(line)?.[1] ?? '')
    .filter((server) => isIP(server) !== 0)
    .slice(0, MAX_SERVERS);
}

const isLoopback = (server: string): boolean => server.startsWith('127.') || server === '::1';
