import { afterAll, beforeAll, expect, test } from 'vitest';
import { type NftTable, openTable } from '../../src/network/nftables/table.ts';
import { type PodRange, podElements, podRules, podSection } from '../../src/network/pod-network/rules.ts';
import { type Datagram, sendDatagrams } from '../support/pod-packets.ts';
import { createRoutedNetwork, type Place, POD_CIDRS, type RoutedNetwork } from '../support/routed-network.ts';

const { signal } = new AbortController();
const PORT = 7;
const [cidr, cidr6] = POD_CIDRS;
const RANGES: PodRange[] = [
  { family: 'IPv4', cidr },
  { family: 'IPv6', cidr: cidr6 },
];
/** Records the source addresses of the datagrams that arrive. */
const RECORDER = `
  table inet recorder {
    set from_ip { type ipv4_addr; flags dynamic; size 100; }
    set from_ip6 { type ipv6_addr; flags dynamic; size 100; }
    chain input {
      type filter hook input priority 0;
      meta nfproto ipv4 udp dport ${PORT} add @from_ip { ip saddr }
      meta nfproto ipv6 udp dport ${PORT} add @from_ip6 { ip6 saddr }
    }
  }`;

let network: RoutedNetwork;
let table: NftTable;
beforeAll(async () => {
  network = await createRoutedNetwork(2);
  const { node, outside, pods } = network;
  // The kernel must not drop the packets because of their routes.
  await node.namespace.runOk('sysctl', ['-qw', 'net.ipv4.conf.all.rp_filter=0', 'net.ipv4.conf.out.rp_filter=0']);
  await outside.namespace.runOk('ip', ['route', 'add', cidr, 'via', node.ip]);
  await outside.namespace.runOk('ip', ['route', 'add', cidr6, 'via', node.ip6]);
  for (const { namespace } of [node, ...pods]) await namespace.runOk('nft', ['-f', '-'], RECORDER);
  table = openTable({ name: 'lifepod-0', namespace: node.namespace.name, signal });
});
afterAll(() => network[Symbol.asyncDispose]());

async function attachPods(...numbers: number[]): Promise<void> {
  const attachments = numbers.map((number) => {
    const { ip, ip6, namespace } = network.pods[number] as Place;
    return {
      sandboxId: namespace.name,
      link: `pod${number}`,
      namespace: `/run/netns/${namespace.name}`,
      addresses: [ip, ip6],
      hostPorts: [],
      usesPortmap: false,
      attachedAt: 0,
    };
  });
  const rules = podRules({ serviceIps: [], bridge: 'bridge0', ranges: RANGES });
  const all = new Map(attachments.map((attachment) => [attachment.sandboxId, attachment]));
  await table.set(
    'pods',
    podSection(rules, {}, all, (each) => podElements(each, RANGES)),
  );
}

/**
 * Sends one datagram from each address in `from`, and then one from the sender's own address. The sender has the addresses in `from` only
 * during the call.
 */
async function send(sender: Place, to: string, ...from: string[]): Promise<void> {
  for (const address of from) await sender.namespace.run('ip', 'address', 'add', address, 'dev', 'lo', 'nodad');
  const all: Datagram[] = [...from.map((address) => ({ to, from: address, text: 'x' })), { to, text: 'x' }];
  await sendDatagrams(`/run/netns/${sender.namespace.name}`, PORT, all);
  for (const address of from) await sender.namespace.run('ip', 'address', 'delete', address, 'dev', 'lo');
}

/** Resolves with the source addresses of the datagrams that have arrived since the last call, as soon as one has. */
async function arrived({ namespace }: Place, family: 'ip' | 'ip6'): Promise<string[]> {
  const read = async (): Promise<string[]> => {
    const listed = await namespace.runOk('nft', ['--json', 'list', 'set', 'inet', 'recorder', `from_${family}`]);
    const { nftables } = JSON.parse(listed) as { nftables: { set?: { elem?: string[] } }[] };
    return nftables.flatMap(({ set }) => set?.elem ?? []).sort();
  };
  await expect.poll(read, { timeout: 20_000 }).not.toEqual([]);
  const found = await read();
  await namespace.runOk('nft', ['flush', 'set', 'inet', 'recorder', `from_${family}`]);
  return found;
}

test.each(['ip', 'ip6'] as const)(
  'a Pod sends only from its own %s address, and no other machine from one of a Pod',
  async (family) => {
    const { node, outside, pods } = network;
    const [first, second] = pods as [Place, Place];
    const unused = { ip: '10.99.0.77', ip6: 'fd00:99::77' }[family];
    const gateway = { ip: '10.99.0.1', ip6: 'fd00:99::1' }[family];
    const foreign = { ip: '198.18.0.1', ip6: '2001:db8:1::1' }[family];
    await attachPods(0, 1);
    for (const target of [first, node]) {
      await send(outside, target[family], second[family], unused, gateway);
      expect(await arrived(target, family)).toEqual([outside[family]]);
    }
    for (const target of [second, node]) {
      await send(
        first,
        target[family],
        ...[second[family], unused, gateway, foreign].filter((ip) => ip !== target[family]),
      );
      expect(await arrived(target, family)).toEqual([first[family]]);
    }
    // The node reaches Pods, and itself by its address in the Pod range.
    await send(node, first[family]);
    expect(await arrived(first, family)).toEqual([gateway]);
    await send(node, gateway);
    expect(await arrived(node, family)).toEqual([gateway]);

    await attachPods(1);
    await send(first, node[family]);
    await send(second, node[family]);
    expect(await arrived(node, family)).toEqual([second[family]]);
    await attachPods(0, 1);
    await send(first, node[family]);
    expect(await arrived(node, family)).toEqual([first[family]]);
  },
);
