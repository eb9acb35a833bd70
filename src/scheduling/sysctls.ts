/**
 * Determines which sysctls a node allows in Pods: the safe ones, and those that the administrator allows. The functions are pure.
 * Source: pkg/kubelet/sysctl and component-helpers' util/sysctl of v1.33 (rules and wording).
 */

/** Sysctls that are namespaced per Pod and cannot harm other Pods. */
const SAFE_SYSCTLS: readonly string[] = [
  'kernel.shm_rmid_forced',
  'net.ipv4.ip_local_port_range',
  'net.ipv4.ip_local_reserved_ports',
  'net.ipv4.ip_unprivileged_port_start',
  'net.ipv4.ping_group_range',
  'net.ipv4.tcp_fin_timeout',
  'net.ipv4.tcp_keepalive_intvl',
  'net.ipv4.tcp_keepalive_probes',
  'net.ipv4.tcp_keepalive_time',
  'net.ipv4.tcp_rmem',
  'net.ipv4.tcp_syncookies',
  'net.ipv4.tcp_wmem',
];

const PATTERN = /^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*([a-z0-9]([-_a-z0-9]*[a-z0-9])?\*?|\*)$/;
const MAX_LENGTH = 253;

/** Replaces slashes by dots, as the runtime and the kernel's documentation write names. */
export const dottedSysctl = (name: string): string => name.replaceAll('/', '.');

type SysctlNamespace = 'ipc' | 'net';

function namespaceOf(name: string): SysctlNamespace | undefined {
  if (name === 'kernel.sem' || /^(kernel\.(shm|msg)|fs\.mqueue\.)/.test(name)) return 'ipc';
  return name.startsWith('net.') ? 'net' : undefined;
}

/**
 * Parses a comma-separated list of names, and of prefixes that end in `*`. Returns them with dots instead of slashes. Throws if an entry is
 * malformed or not namespaced: a Pod would set such a sysctl for the whole machine.
 */
export function parseAllowedSysctls(text: string): string[] {
  const patterns = text.split(',').map((part) => part.trim());
  return patterns
    .filter((pattern) => pattern !== '')
    .map((pattern) => {
      if (pattern.length > MAX_LENGTH || !PATTERN.test(pattern))
        throw new Error(
          `${JSON.stringify(pattern)} is not a valid sysctl: use names such as kernel.msgmax, or prefixes such as net.*`,
        );
      const dotted = dottedSysctl(pattern);
      if (namespaceOf(dotted.replace(/\*$/, '')) === undefined)
        throw new Error(
          `${JSON.stringify(pattern)} is not namespaced: use sysctls below net., fs.mqueue., kernel.shm and kernel.msg, or kernel.sem`,
        );
      return dotted;
    });
}

/**
 * Returns why the node rejects the sysctl; undefined if it is allowed. `allowed`: the result of parseAllowedSysctls(). `host`: which
 * namespaces the Pod shares with the machine.
 */
export function sysctlRefusal(
  name: string,
  allowed: readonly string[],
  host: { network: boolean; ipc: boolean },
): string | undefined {
  const dotted = dottedSysctl(name);
  const matches = (pattern: string): boolean =>
    pattern.endsWith('*') ? dotted.startsWith(pattern.slice(0, -1)) : dotted === pattern;
  if (![...SAFE_SYSCTLS, ...allowed].some(matches)) return `${JSON.stringify(dotted)} not allowlisted`;
  const namespace = namespaceOf(dotted);
  const shared = (namespace === 'ipc' && host.ipc) || (namespace === 'net' && host.network);
  return shared ? `${JSON.stringify(dotted)} not allowed with host ${namespace} enabled` : undefined;
}
