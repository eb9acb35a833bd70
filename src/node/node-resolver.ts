/** The resolver configuration that Pods take from their node. */
import { readFile } from 'node:fs/promises';
import { type DnsConfig, parseResolvConf } from './dns-config.ts';

export const MACHINE_RESOLV_CONF = '/etc/resolv.conf';
/** What systemd-resolved forwards to. */
const RESOLVED_CONF = '/run/systemd/resolve/resolv.conf';

/**
 * Of `file`, or of the machine: where a stub listens on the machine's loopback, which Pods do not reach, the servers behind
 * it. What cannot be read has no servers.
 */
export async function readNodeResolver(
  file: string | undefined,
  machine = { conf: MACHINE_RESOLV_CONF, resolved: RESOLVED_CONF },
): Promise<DnsConfig> {
  const read = async (path: string): Promise<DnsConfig> =>
    parseResolvConf(await readFile(path, 'utf8').catch(() => ''));
  if (file !== undefined && file !== '') return read(file);
  const config = await read(machine.conf);
  if (config.servers.length === 0 || !config.servers.every(isLoopback)) return config;
  const behind = await read(machine.resolved);
  return behind.servers.length === 0 ? config : behind;
}

const isLoopback = (server: string): boolean => server.startsWith('127.') || server === '::1';
