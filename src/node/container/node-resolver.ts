/** The resolver configuration that Pods take from their node. */
import { readFileSync } from 'node:fs';
import { type DnsConfig, parseResolvConf } from './dns-config.ts';

export const MACHINE_RESOLV_CONF = '/etc/resolv.conf';
/** What systemd-resolved forwards to. */
const RESOLVED_CONF = '/run/systemd/resolve/resolv.conf';

/**
 * Of `file`, or of the machine: where a stub listens on the machine's loopback, which Pods do not reach, the servers behind
 * it. What cannot be read has no servers. Read at once, for each container anew: a few lines, where the way through the
 * thread pool and back four times would be the longest part of what is done before a container is made.
 */
export function readNodeResolver(
  file: string | undefined,
  machine = { conf: MACHINE_RESOLV_CONF, resolved: RESOLVED_CONF },
): DnsConfig {
  if (file !== undefined && file !== '') return read(file);
  const config = read(machine.conf);
  if (config.servers.length === 0 || !config.servers.every(isLoopback)) return config;
  const behind = read(machine.resolved);
  return behind.servers.length === 0 ? config : behind;
}

function read(path: string): DnsConfig {
  try {
    return parseResolvConf(readFileSync(path, 'utf8'));
  } catch {
    return parseResolvConf('');
  }
}

const isLoopback = (server: string): boolean => server.startsWith('127.') || server === '::1';
