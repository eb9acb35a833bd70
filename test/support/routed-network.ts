/**
 * A node, Pods and a machine outside the node, each as a network namespace. The node routes between them as it does for real Pods: each Pod
 * has a pair of interfaces of its own. The machine outside is the node's default gateway.
 */
import { createNetworkNamespace, type NetworkNamespace } from './network-namespace.ts';
import { NetworkPeer } from './network-peer.ts';

export const POD_CIDRS = ['10.99.0.0/24', 'fd00:99::/64'] as const;

export interface Place {
  namespace: NetworkNamespace;
  peer: NetworkPeer;
  ip: string;
  ip6: string;
}

export interface RoutedNetwork extends AsyncDisposable {
  node: Place;
  pods: readonly Place[];
  outside: Place;
}

/** The first addresses of the ranges. The node has them on its interface of each Pod. */
const GATEWAY = { ip: '10.99.0.1', ip6: 'fd00:99::1' };

interface Addresses {
  ip: string;
  ip6: string;
}

export async function createRoutedNetwork(podCount: number): Promise<RoutedNetwork> {
  const node = await createNetworkNamespace();
  const outside = await createNetworkNamespace();
  const pods = await Promise.all(Array.from({ length: podCount }, createNetworkNamespace));
  const podAddresses = pods.map((_, index) => ({ ip: `10.99.0.${10 + index}`, ip6: `fd00:99::${10 + index}` }));
  // An interface finds no neighbors while the kernel checks its link-local address for duplicates, which takes a second or two.
  const withoutDetection = ['-qw', 'net.ipv6.conf.all.accept_dad=0', 'net.ipv6.conf.default.accept_dad=0'];
  for (const namespace of [node, outside, ...pods]) await namespace.runOk('sysctl', withoutDetection);
  await setUpNode(node, outside, pods, podAddresses);
  await Promise.all([
    setUpOutside(outside),
    ...pods.map((pod, index) => setUpPod(pod, podAddresses[index] as Addresses)),
  ]);
  const place = (namespace: NetworkNamespace, addresses: Addresses): Place => ({
    namespace,
    peer: new NetworkPeer(namespace.name),
    ...addresses,
  });
  const places = {
    node: place(node, { ip: '192.0.2.1', ip6: '2001:db8::1' }),
    outside: place(outside, { ip: '192.0.2.2', ip6: '2001:db8::2' }),
    pods: pods.map((pod, index) => place(pod, podAddresses[index] as Addresses)),
  };
  return {
    ...places,
    async [Symbol.asyncDispose]() {
      for (const { peer, namespace } of [places.node, places.outside, ...places.pods]) {
        await peer.end();
        await namespace[Symbol.asyncDispose]();
      }
    },
  };
}

const batch = (namespace: NetworkNamespace, lines: string[]): Promise<string> =>
  namespace.runOk('ip', ['-batch', '-'], `${lines.join('\n')}\n`);

async function setUpNode(
  node: NetworkNamespace,
  outside: NetworkNamespace,
  pods: readonly NetworkNamespace[],
  addresses: readonly Addresses[],
): Promise<void> {
  await node.runOk('sysctl', [
    '-qw',
    'net.ipv4.ip_forward=1',
    'net.ipv6.conf.all.forwarding=1',
    // Without this setting, the kernel would limit the rate of ICMP errors, including redirects.
    'net.ipv4.icmp_ratelimit=0',
  ]);
  await batch(node, [
    `link add out type veth peer name eth0 netns ${outside.name}`,
    'address add 192.0.2.1/24 dev out',
    'address add 2001:db8::1/64 dev out nodad',
    'link set out up',
    'route add default via 192.0.2.2',
    'route add default via 2001:db8::2 dev out',
    ...pods.flatMap(({ name }, index) => [
      `link add pod${index} type veth peer name eth0 netns ${name}`,
      `address add ${GATEWAY.ip}/32 dev pod${index}`,
      `address add ${GATEWAY.ip6}/128 dev pod${index} nodad`,
      `link set pod${index} up`,
      `route add ${addresses[index]?.ip} dev pod${index}`,
      `route add ${addresses[index]?.ip6} dev pod${index}`,
    ]),
  ]);
  await node.runOk('sysctl', ['-qw', ...pods.map((_, index) => `net.ipv4.conf.pod${index}.route_localnet=1`)]);
}

const setUpOutside = (outside: NetworkNamespace): Promise<string> =>
  batch(outside, [
    'address add 192.0.2.2/24 dev eth0',
    'address add 2001:db8::2/64 dev eth0 nodad',
    'link set eth0 up',
    // Services have addresses in these ranges, which the node itself does not have.
    'route add 198.51.100.0/24 via 192.0.2.1',
    'route add 10.96.0.0/16 via 192.0.2.1',
  ]);

const setUpPod = (pod: NetworkNamespace, { ip, ip6 }: Addresses): Promise<string> =>
  batch(pod, [
    `address add ${ip}/32 dev eth0`,
    `address add ${ip6}/128 dev eth0 nodad`,
    'link set eth0 up',
    `route add ${GATEWAY.ip} dev eth0`,
    `route add default via ${GATEWAY.ip}`,
    `route add ${GATEWAY.ip6} dev eth0`,
    `route add default via ${GATEWAY.ip6} dev eth0`,
  ]);
