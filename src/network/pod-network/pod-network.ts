/**
 * The network of the Pods of one machine. Each sandbox is connected to the machine by a pair of interfaces of its own, and packets between
 * Pods are routed. Thus the rules for Services and network policies see them, whether or not the kernel shows bridged packets to these
 * rules. A bridge without ports has the gateway address of the Pods, the cluster IPs of the cluster DNS and of the API, and the routes of
 * the Service ranges.
 *
 * Boundary: this folder uses ip(8), the instance's nftables table, /proc/sys, and files below <dataDir>/cni and in libcni's cache. The
 * runtime calls the CNI plugin `ptp`, which gives the gateway address to the machine's interface of each sandbox, too.
 * Invariants:
 *  1. An instance does not change the bridge, table or addresses of another instance.
 *  2. setUpNetwork() may be repeated at any time, even if an earlier call was interrupted. Attached Pods keep their network.
 *  3. libcni's records say which sandboxes are attached. No other state is needed, so an engine that was killed loses nothing.
 *  4. A container starts only after the rules contain its sandbox and its host ports. The interface of a sandbox gets `route_localnet`,
 *     which host ports on 127.0.0.1 need, only after the rules contain the sandbox.
 *  5. tearDownNetwork() leaves the sysctls for the whole machine as they are: see forwarding.ts.
 */
import { mkdir } from 'node:fs/promises';
import { writeFileAtomic } from '../../platform/files.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import type { ApiAddresses } from '../api-address.ts';
import { NFT_WORDS } from '../families.ts';
import { type NftTable, openTable } from '../nftables/table.ts';
import { type AttachedPods, followAttachments } from './attached-pods.ts';
import { setUpBridge } from './bridge.ts';
import { enableForwarding } from './forwarding.ts';
import { cniConfigurationPath, type Instance, ipamDirectory, type NetworkNames, networkNames } from './names.ts';
import { moveOffBridge, removePortmapRules } from './older-bridge.ts';
import { checkRanges, type PodNetworkRange, type PodNetworkRanges, podRanges } from './ranges.ts';
import { createServiceRoutes, type ServiceRoutes } from './service-routes.ts';

export interface NetworkOptions extends Instance {
  /**
   * The range of the Pods' addresses, an IPv4 network, which may be followed by a comma and an IPv6 network. The first usable address of
   * each becomes a gateway.
   */
  podCidr: string;
  /**
   * The range of Services, or two ranges with a comma between them. They must overlap neither a Pod range nor a route of the machine.
   * Absent: the ranges get no route.
   */
  serviceCidr?: string;
  /**
   * The IPv4 cluster IPs that the machine itself has. The cluster DNS listens on one of them. Through the cluster IP of the API, programs
   * of the machine reach the API without a route to the Service range.
   */
  serviceIps: readonly string[];
  /** Absent if the port of the API is not known yet. */
  api?: ApiAddresses;
  /** Whether Pods may be in CNI networks of a runtime that lifepod did not start; by default, they are not. */
  hasForeignPods?: boolean;
  /** Undefined if the CNI plugins are not installed. */
  pluginDirectory: string | undefined;
  timers: Timers;
  log: Log;
  /** Ends the set-up, and the updates of the rules. The network remains. */
  signal: AbortSignal;
}

export interface PodNetwork extends NetworkNames, AttachedPods {
  gateway: string;
  /** The routes follow added and deleted ServiceCIDRs. */
  routes: ServiceRoutes;
  rules: NftTable;
}

/**
 * Sets up or updates the network. Rejects with a UserError if a range is not usable (see checkRanges()), or if IP forwarding cannot be
 * enabled.
 */
export async function setUpNetwork(options: NetworkOptions): Promise<PodNetwork> {
  const { serviceCidr, signal, timers, log } = options;
  const names = networkNames(options);
  const ranges = podRanges(options.podCidr);
  const [{ gateway, cidr }] = ranges;
  await checkRanges(options);
  await setUpBridge(names.bridge, bridgeAddresses(ranges, options.serviceIps), signal);
  const families = ranges.map(({ family }) => family);
  const older = { ...options, bridge: names.bridge, podCidr: cidr, gateway };
  await moveOffBridge(older);
  const rules = openTable({ name: names.table, signal, watch: { timers, log } });
  const pods = await followAttachments({
    ...options,
    rules,
    network: names.network,
    bridge: names.bridge,
    ranges,
  });
  const routes = createServiceRoutes({ bridge: names.bridge, families, log, signal });
  if (serviceCidr !== undefined) await routes.add(serviceCidr.split(','));
  await removePortmapRules(older);
  await enableForwarding(families, signal);
  await mkdir(names.cniConfigDirectory, { recursive: true, mode: 0o700 });
  writeFileAtomic(
    cniConfigurationPath(options),
    `${JSON.stringify(cniConfiguration(options, names, ranges), null, 2)}\n`,
  );
  return { ...names, gateway, routes, rules, ...pods };
}

function bridgeAddresses([first, ...others]: PodNetworkRanges, serviceIps: readonly string[]): string[] {
  const withLength = ({ gateway, cidr }: PodNetworkRange): string => `${gateway}/${cidr.split('/')[1]}`;
  return [withLength(first), ...serviceIps.map((ip) => `${ip}/32`), ...others.map(withLength)];
}

function cniConfiguration(options: NetworkOptions, names: NetworkNames, ranges: readonly PodNetworkRange[]): object {
  return {
    cniVersion: '1.0.0',
    name: names.network,
    plugins: [
      {
        type: 'ptp',
        ipMasq: false,
        ipam: {
          type: 'host-local',
          dataDir: ipamDirectory(options.dataDir),
          ranges: ranges.map(({ cidr }) => [{ subnet: cidr }]),
          routes: ranges.map(({ family }) => ({ dst: `${NFT_WORDS[family].anyAddress}/0` })),
        },
      },
    ],
  };
}
