/**
 * Sets up the Pod network of one machine: a bridge that has the Pods' gateway address and the address of the cluster DNS, the CNI
 * configuration that attaches sandboxes to the bridge, masquerading of traffic that leaves the Pod range, and a filter between Pods and
 * the loopback addresses of the machine.
 * Boundary: this file uses only ip(8), nft(8), /proc/sys, and files below <dataDir>/cni and in libcni's cache. The runtime calls the CNI
 * plugins.
 * Invariants:
 *  1. The names of the bridge, the table and the CNI network contain a hash of the instance, so an instance never changes the bridge,
 *     table or addresses of another instance.
 *  2. setUpNetwork() may be repeated at any time, even if an earlier call was interrupted. Attached Pods keep their network.
 *  3. tearDownNetwork() removes the bridge, the interfaces that are attached to it, the table and all leases of addresses.
 */
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { formatCidr, formatIpv4, overlaps, parseCidr } from '../machinery/cidr.ts';
import { UserError, writeFileAtomic } from '../platform/files.ts';
import { runCommand, runCommandOk } from '../platform/processes.ts';

export interface NetworkOptions {
  dataDir: string;
  /** Distinguishes this engine from other engines on the machine, for example the path of its data folder. */
  instance: string;
  /** The range of the Pods' addresses; its first usable address becomes the gateway. */
  podCidr: string;
  /** Used only to check that this range overlaps neither the Pod range nor a route of the machine. Absent: not checked. */
  serviceCidr?: string;
  /** The address on which the cluster's DNS listens. */
  dnsIp: string;
  signal: AbortSignal;
}

export interface NetworkNames {
  /** Name of the network interface, at most 15 characters. */
  bridge: string;
  /** Name of the nftables table. */
  table: string;
  /** Name of the CNI network. */
  network: string;
  /** The folder from which the runtime reads CNI configurations. */
  cniConfigDirectory: string;
}

/** The folder in which libcni stores the results of CNI calls. */
const CNI_CACHE = '/var/lib/cni/results';

export function networkNames({ dataDir, instance }: Pick<NetworkOptions, 'dataDir' | 'instance'>): NetworkNames {
  const hash = createHash('sha256').update(instance).digest('hex').slice(0, 8);
  return {
    bridge: `lp${hash}`,
    table: `lifepod-${hash}`,
    network: `lifepod-${hash}`,
    cniConfigDirectory: join(dataDir, 'cni', 'net.d'),
  };
}

/**
 * Sets up the network, or updates it. Rejects with a UserError if the Pod range is too small, if the Pod and the Service range
 * overlap each other or a route of the machine, or if IP forwarding cannot be enabled.
 */
export async function setUpNetwork(options: NetworkOptions): Promise<NetworkNames & { gateway: string }> {
  const { signal } = options;
  const names = networkNames(options);
  const range = parseCidr(options.podCidr);
  const gateway = formatIpv4(range.base + 1);
  await checkRanges(options, names.bridge);
  // Load the filter before the bridge is up, so that no packet of a Pod is unfiltered.
  await loadTable(names, formatCidr(range), signal);
  await setUpBridge(names.bridge, [`${gateway}/${range.prefixLength}`, `${options.dnsIp}/32`], signal);
  await enableForwarding();
  await mkdir(names.cniConfigDirectory, { recursive: true, mode: 0o700 });
  writeFileAtomic(
    join(names.cniConfigDirectory, '10-lifepod.conflist'),
    `${JSON.stringify(cniConfiguration(options, names), null, 2)}\n`,
  );
  return { ...names, gateway };
}

const FORWARDING = '/proc/sys/net/ipv4/ip_forward';

async function enableForwarding(): Promise<void> {
  // In a container, the file may be read-only although forwarding is already enabled.
  if ((await readFile(FORWARDING, 'utf8')).trim() === '1') return;
  await writeFile(FORWARDING, '1').catch((error: Error) => {
    throw new UserError(`IP forwarding cannot be enabled: ${error.message}; set the sysctl net.ipv4.ip_forward to 1`);
  });
}

function cniConfiguration(options: NetworkOptions, names: NetworkNames): object {
  return {
    cniVersion: '1.0.0',
    name: names.network,
    plugins: [
      {
        type: 'bridge',
        bridge: names.bridge,
        isGateway: true,
        ipMasq: false,
        hairpinMode: true,
        ipam: {
          type: 'host-local',
          dataDir: ipamDirectory(options.dataDir),
          ranges: [[{ subnet: formatCidr(parseCidr(options.podCidr)) }]],
          routes: [{ dst: '0.0.0.0/0' }],
        },
      },
      { type: 'portmap', capabilities: { portMappings: true } },
    ],
  };
}

const ipamDirectory = (dataDir: string): string => join(dataDir, 'cni', 'networks');

interface Route {
  dst: string;
  dev?: string;
}

async function checkRanges({ podCidr, serviceCidr, signal }: NetworkOptions, bridge: string): Promise<void> {
  const pods = parseCidr(podCidr);
  if (pods.prefixLength > 30) {
    throw new UserError(`the Pod range ${podCidr} is too small: choose a prefix length of at most /30 with --pod-cidr`);
  }
  const services = serviceCidr === undefined ? undefined : parseCidr(serviceCidr);
  if (services !== undefined && overlaps(pods, services)) {
    throw new UserError(
      `the Pod range ${podCidr} and the Service range ${serviceCidr} overlap: choose another --pod-cidr or --service-cidr`,
    );
  }
  const routes = JSON.parse(await runCommandOk('ip', ['-json', '-4', 'route', 'show'], { signal })) as Route[];
  for (const { dst, dev } of routes) {
    if (dst === 'default' || dev === bridge) continue;
    const route = parseCidr(dst.includes('/') ? dst : `${dst}/32`);
    const taken = overlaps(pods, route)
      ? { what: 'Pod', range: podCidr, option: '--pod-cidr' }
      : services !== undefined && overlaps(services, route)
        ? { what: 'Service', range: serviceCidr, option: '--service-cidr' }
        : undefined;
    if (taken !== undefined) {
      throw new UserError(
        `the ${taken.what} range ${taken.range} overlaps the route ${dst} of the interface ${dev ?? 'unknown'}: choose another with ${taken.option}`,
      );
    }
  }
}

interface Link {
  ifname: string;
  ifindex: number;
  link_netnsid?: number;
  addr_info?: { family: string; local: string; prefixlen: number }[];
}

async function readLinks(args: string[], signal: AbortSignal): Promise<Link[]> {
  const { code, stdout } = await runCommand('ip', ['-json', ...args], { signal });
  return code === 0 && stdout.trim() !== '' ? (JSON.parse(stdout) as Link[]) : [];
}

/**
 * Creates the bridge if it does not exist, and sets its addresses. Their order matters: the CNI plugin bridge refuses a bridge
 * whose first IPv4 address is not the gateway.
 */
async function setUpBridge(bridge: string, addresses: string[], signal: AbortSignal): Promise<void> {
  const ip = (...args: string[]): Promise<string> => runCommandOk('ip', args, { signal });
  if ((await readLinks(['link', 'show', 'dev', bridge], signal)).length === 0) {
    // Without a fixed MAC address, the bridge would use the MAC address of a Pod's interface. When that interface is deleted, the
    // bridge's address would change, and the other Pods could not reach their gateway.
    const hash = createHash('sha256').update(bridge).digest('hex');
    const hardware = `02:${(hash.slice(0, 10).match(/../g) ?? []).join(':')}`;
    await ip('link', 'add', bridge, 'address', hardware, 'type', 'bridge');
  }
  const [link] = await readLinks(['-4', 'address', 'show', 'dev', bridge], signal);
  const present = (link?.addr_info ?? []).map(({ local, prefixlen }) => `${local}/${prefixlen}`);
  if (present.join() !== addresses.join()) {
    await ip('-4', 'address', 'flush', 'dev', bridge);
    for (const address of addresses) await ip('address', 'add', address, 'dev', bridge);
  }
  await ip('link', 'set', bridge, 'up');
}

/**
 * Loads the rules for masquerading and the filter. The filter is necessary because the CNI plugin portmap sets route_localnet on the
 * bridge for the first host port and never unsets it: from then on, the kernel accepts packets from Pods to or from 127.0.0.0/8. The
 * filter drops these packets. It runs before connection tracking, when replies to the machine's own connections to 127.0.0.1:HOSTPORT
 * still have the gateway as their destination, so that these replies pass. The kernel itself drops the corresponding IPv6 packets.
 */
async function loadTable({ table, bridge }: NetworkNames, podCidr: string, signal: AbortSignal): Promise<void> {
  const rules = `
table ip ${table} {}
delete table ip ${table}
table ip ${table} {
  chain prerouting {
    type filter hook prerouting priority raw; policy accept;
    iifname "${bridge}" ip daddr 127.0.0.0/8 drop
    iifname "${bridge}" ip saddr 127.0.0.0/8 drop
  }
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr ${podCidr} ip daddr != ${podCidr} oifname != "${bridge}" masquerade
  }
}
`;
  await runCommandOk('nft', ['-f', '-'], { input: rules, signal });
}

/**
 * Removes the network of the instance. The call may be repeated: missing parts are ignored. Rejects if nft(8) fails or the bridge cannot
 * be removed.
 */
export async function tearDownNetwork(options: Pick<NetworkOptions, 'dataDir' | 'instance' | 'signal'>): Promise<void> {
  const { signal } = options;
  const names = networkNames(options);
  const ports = await readLinks(['link', 'show', 'master', names.bridge], signal);
  await removeNamespaces(ports, signal);
  for (const port of ports) await runCommand('ip', ['link', 'delete', port.ifname], { signal });
  await runCommand('ip', ['link', 'delete', names.bridge], { signal });
  const deletion = `table ip ${names.table} {}\ndelete table ip ${names.table}\n`;
  await runCommandOk('nft', ['-f', '-'], { input: deletion, signal });
  for (const entry of await readdir(CNI_CACHE).catch(() => [])) {
    if (entry.startsWith(`${names.network}-`)) await rm(join(CNI_CACHE, entry), { force: true });
  }
  await rm(join(options.dataDir, 'cni'), { recursive: true, force: true });
  const left = await readLinks(['link', 'show', 'dev', names.bridge], signal);
  if (left.length > 0) throw new Error(`the bridge ${names.bridge} could not be removed`);
}

/** Removes the sandboxes' network namespaces (cni-…) to which the bridge's ports are connected. */
async function removeNamespaces(ports: Link[], signal: AbortSignal): Promise<void> {
  const { stdout } = await runCommand('ip', ['-json', 'netns', 'list'], { signal });
  const known = (stdout.trim() === '' ? [] : JSON.parse(stdout)) as { name: string; id?: number }[];
  const peers = new Set(ports.map((port) => port.link_netnsid));
  for (const { name, id } of known) {
    if (id !== undefined && peers.has(id) && name.startsWith('cni-'))
      await runCommand('ip', ['netns', 'delete', name], { signal });
  }
}

/** Returns the leased addresses by sandbox ID, as recorded in the files of the CNI plugin host-local. */
export async function leasedAddresses(
  options: Pick<NetworkOptions, 'dataDir' | 'instance'>,
): Promise<Map<string, string>> {
  const folder = join(ipamDirectory(options.dataDir), networkNames(options).network);
  const leases = new Map<string, string>();
  for (const entry of await readdir(folder).catch(() => [])) {
    if (!/^\d+\.\d+\.\d+\.\d+$/.test(entry)) continue;
    const [id] = (await readFile(join(folder, entry), 'utf8')).split(/\s/);
    if (id !== undefined) leases.set(id, entry);
  }
  return leases;
}
