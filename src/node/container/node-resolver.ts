import { readTextFile } from '../../platform/folders/text-file.ts';
import { type DnsConfig, parseResolvConf } from './dns-config.ts';

export const MACHINE_RESOLV_CONF = '/etc/resolv.conf';
/** The file in which systemd-resolved lists the servers to which it forwards queries. */
export const RESOLVED_CONF = '/run/systemd/resolve/resolv.conf';

/**
 * Reads `file` if defined, else the machine's configuration. If the machine's only servers are stubs on loopback, which Pods cannot reach,
 * returns systemd-resolved's configuration with the servers behind the stubs. A file that cannot be read counts as empty. The small files
 * are read synchronously, since an asynchronous read would take several round trips through the thread pool.
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
    return parseResolvConf(readTextFile(path));
  } catch {
    return parseResolvConf('');
  }
}

const isLoopback = (server: string): boolean => server.startsWith('127.') || server === '::1';
