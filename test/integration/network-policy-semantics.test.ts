/** Uses real sockets in both address families. Pods and the node are network namespaces. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { NetworkPolicy, NetworkPolicySpec } from '../../src/api/generated/types.ts';
import { type NftTable, openTable } from '../../src/network/nftables/table.ts';
import { PoliciesSection } from '../../src/network/policies/policies-section.ts';
import { createRoutedNetwork, type Place, type RoutedNetwork } from '../support/routed-network.ts';

const PODS = {
  web: { namespace: 'one', labels: { app: 'web' } },
  client: { namespace: 'one', labels: { app: 'client' } },
  /** This Pod has the labels of `client`, in another namespace. */
  twin: { namespace: 'two', labels: { app: 'client' } },
  guest: { namespace: 'two', labels: { app: 'guest' } },
};
const NAMES = Object.keys(PODS) as (keyof typeof PODS)[];
/** The port that each Pod names `web`. The Pod `client` gives this name to another port than the others. */
const PORTS = { web: 8080, client: 8081, twin: 8080, guest: 8080 };

const { signal } = new AbortController();
let network: RoutedNetwork;
let table: NftTable;
let section: PoliciesSection;

beforeAll(async () => {
  network = await createRoutedNetwork(NAMES.length);
  table = openTable({ name: 'lifepod-0', namespace: network.node.namespace.name, signal });
  section = new PoliciesSection();
  for (const [index, name] of NAMES.entries()) {
    const { peer, ip, ip6 } = network.pods[index] as Place;
    const ports = [{ name: 'web', protocol: 'TCP', port: PORTS[name] }];
    section.setPod(name, { ...PODS[name], addresses: [ip, ip6], ports });
    for (const port of [8080, 8081, 8082]) await peer.listen(name, port);
  }
  await network.node.peer.listen('node', 8080);
  section.setNamespace('one', { team: 'one' });
  section.setNamespace('two', { team: 'two' });
}, 60_000);
afterAll(async () => {
  await network?.[Symbol.asyncDispose]();
});

const placeOf = (name: string): Place =>
  name === 'node' ? network.node : (network.pods[NAMES.indexOf(name as never)] as Place);

/** Replaces all policies. The new policies are in the namespace `one`, and select the Pod `web` unless the spec selects others. */
async function enforce(...specs: Partial<NetworkPolicySpec>[]): Promise<void> {
  for (let index = 0; index < 3; index++) {
    const spec = specs[index];
    const metadata = { name: `p${index}`, namespace: 'one' };
    const policy = { metadata, spec: { podSelector: { matchLabels: { app: 'web' } }, ...spec } };
    section.setPolicy(metadata.name, spec === undefined ? undefined : (policy as NetworkPolicy));
  }
  await table.set('policies', section.section());
}

/** Asks a question such as `client > web tcp 8080`. Resolves with the address families that got an answer, or `none`. */
async function answers(question: string): Promise<string> {
  const [from = '', , to = '', protocol, port] = question.split(' ');
  const { ip, ip6 } = placeOf(to);
  const asked = [ip, ip6].map((address) =>
    placeOf(from).peer.ask({ protocol: protocol as 'tcp' | 'udp', address, port: Number(port) }),
  );
  const found = (await Promise.all(asked)).map((answer) => answer.startsWith(`${to} `));
  return ['IPv4', 'IPv6'].filter((_, index) => found[index]).join(' and ') || 'none';
}

const BOTH = 'IPv4 and IPv6';
const client = { podSelector: { matchLabels: { app: 'client' } } };
const two = { namespaceSelector: { matchLabels: { team: 'two' } } };

const ROWS: [string, Partial<NetworkPolicySpec>[], Record<string, string>][] = [
  [
    'without policies everything is allowed',
    [],
    { 'client > web tcp 8080': BOTH, 'guest > web udp 8081': BOTH, 'web > node tcp 8080': BOTH },
  ],
  [
    'without policyTypes and egress rules a policy isolates for ingress only',
    [{}],
    { 'client > web tcp 8080': 'none', 'web > client tcp 8080': BOTH, 'client > guest tcp 8080': BOTH },
  ],
  [
    'without policyTypes a policy with egress rules isolates in both directions',
    [{ egress: [{ ports: [{ port: 8081 }] }] }],
    { 'client > web tcp 8080': 'none', 'web > client tcp 8080': 'none', 'web > client tcp 8081': BOTH },
  ],
  [
    'the policyType Egress leaves ingress alone, and replies return',
    [{ policyTypes: ['Egress'], ingress: [] }],
    { 'client > web tcp 8080': BOTH, 'client > web udp 8080': BOTH, 'web > client tcp 8080': 'none' },
  ],
  [
    'the node reaches isolated Pods, as for probes and as Pods with hostNetwork do, and isolated Pods reach the node',
    [{ policyTypes: ['Ingress', 'Egress'] }],
    { 'node > web tcp 8080': BOTH, 'node > web udp 8080': BOTH, 'web > node tcp 8080': BOTH },
  ],
  [
    'a policy that nft rejects isolates its Pods and allows nothing, and other policies allow what they say',
    [{ ingress: [{ ports: [{ port: 70_000 }] }] }, { ingress: [{ from: [two] }] }],
    { 'client > web tcp 8080': 'none', 'guest > web tcp 8080': BOTH, 'web > client tcp 8080': BOTH },
  ],
  [
    'a range of ports ends with endPort',
    [{ ingress: [{ ports: [{ port: 8080, endPort: 8081 }] }] }],
    { 'client > web tcp 8080': BOTH, 'client > web tcp 8081': BOTH, 'client > web tcp 8082': 'none' },
  ],
  [
    'the protocol of a port is TCP by default, and a protocol without a port means all of its ports',
    [{ ingress: [{ ports: [{ port: 8080 }] }, { from: [two], ports: [{ protocol: 'UDP' }] }] }],
    {
      'client > web tcp 8080': BOTH,
      'client > web udp 8080': 'none',
      'guest > web udp 8081': BOTH,
      'guest > web tcp 8081': 'none',
    },
  ],
  [
    'a named port of an ingress rule is the port of the selected Pod',
    [{ ingress: [{ ports: [{ port: 'web' }] }] }],
    { 'client > web tcp 8080': BOTH, 'client > web tcp 8081': 'none', 'client > web udp 8080': 'none' },
  ],
  [
    'a named port of an egress rule is the port of the Pod that is reached',
    [{ policyTypes: ['Egress'], egress: [{ ports: [{ port: 'web' }] }] }],
    { 'web > client tcp 8081': BOTH, 'web > client tcp 8080': 'none', 'web > guest tcp 8080': BOTH },
  ],
  [
    'a podSelector alone selects Pods of the namespace of the policy',
    [{ ingress: [{ from: [client] }] }],
    { 'client > web tcp 8080': BOTH, 'twin > web tcp 8080': 'none' },
  ],
  [
    'a namespaceSelector alone selects all Pods of its namespaces',
    [{ ingress: [{ from: [two] }] }],
    { 'client > web tcp 8080': 'none', 'twin > web tcp 8080': BOTH, 'guest > web tcp 8080': BOTH },
  ],
  [
    'both selectors in one peer must match',
    [{ ingress: [{ from: [{ ...two, ...client }] }] }],
    { 'client > web tcp 8080': 'none', 'twin > web tcp 8080': BOTH, 'guest > web tcp 8080': 'none' },
  ],
  [
    'one of several peers must match',
    [{ ingress: [{ from: [two, client] }] }],
    { 'client > web tcp 8080': BOTH, 'twin > web tcp 8080': BOTH, 'guest > web tcp 8080': BOTH },
  ],
  [
    'peers and ports of one rule must both match, and those of different rules are not combined',
    [
      {
        ingress: [
          { from: [client], ports: [{ port: 8080 }] },
          { from: [two], ports: [{ port: 8081 }] },
        ],
      },
    ],
    {
      'client > web tcp 8080': BOTH,
      'client > web tcp 8081': 'none',
      'guest > web tcp 8081': BOTH,
      'guest > web tcp 8080': 'none',
    },
  ],
  [
    'several policies of a Pod are added',
    [{}, { ingress: [{ from: [client] }] }, { podSelector: {}, ingress: [{ ports: [{ port: 8081 }] }] }],
    { 'client > web tcp 8080': BOTH, 'guest > web tcp 8081': BOTH, 'guest > web tcp 8080': 'none' },
  ],
  [
    'an ipBlock allows its family only, and not what except excludes',
    [{ ingress: [{ from: [{ ipBlock: { cidr: '10.99.0.0/24', except: ['10.99.0.12/31'] } }] }] }],
    { 'client > web tcp 8080': 'IPv4', 'twin > web tcp 8080': 'none', 'guest > web tcp 8080': 'none' },
  ],
  [
    'the blocks of all addresses allow each their family',
    [{ ingress: [{ from: [{ ipBlock: { cidr: '0.0.0.0/0' } }] }, { from: [{ ipBlock: { cidr: '::/0' } }] }] }],
    { 'client > web tcp 8080': BOTH, 'guest > web udp 8081': BOTH },
  ],
  [
    'the block of all addresses without its halves allows nothing, and without one of them the other half',
    [
      { ingress: [{ from: [{ ipBlock: { cidr: '0.0.0.0/0', except: ['0.0.0.0/1', '128.0.0.0/1'] } }] }] },
      { ingress: [{ from: [{ ipBlock: { cidr: '::/0', except: ['::/1'] } }] }] },
    ],
    { 'client > web tcp 8080': 'IPv6' },
  ],
  [
    'adjacent blocks that except excludes are excluded',
    [{ ingress: [{ from: [{ ipBlock: { cidr: '0.0.0.0/0', except: ['10.99.0.10/31', '10.99.0.12/32'] } }] }] }],
    { 'client > web tcp 8080': 'none', 'twin > web tcp 8080': 'none', 'guest > web tcp 8080': 'IPv4' },
  ],
  [
    'what except excludes is allowed by another peer',
    [{ ingress: [{ from: [{ ipBlock: { cidr: 'fd00:99::/64', except: ['fd00:99::11/128'] } }, client] }] }],
    { 'client > web tcp 8080': BOTH, 'guest > web tcp 8080': 'IPv6' },
  ],
  [
    'a connection needs the egress policy of one side and the ingress policy of the other',
    [
      { ingress: [{ from: [client] }] },
      { podSelector: client.podSelector, policyTypes: ['Egress'], egress: [{ ports: [{ port: 8080 }] }] },
    ],
    { 'client > web tcp 8080': BOTH, 'client > web tcp 8081': 'none', 'guest > client tcp 8080': BOTH },
  ],
];

test.each(ROWS)(
  '%s',
  async (_, specs, expected) => {
    await enforce(...specs);
    const questions = Object.keys(expected);
    const found = await Promise.all(questions.map(async (each) => [each, await answers(each)] as const));
    expect(Object.fromEntries(found)).toEqual(expected);
  },
  60_000,
);

test('a UDP flow is cut when it is no longer allowed, also for replies, and continues when it is allowed again', async () => {
  await enforce({ ingress: [{ from: [client] }] });
  const flow = await placeOf('client').peer.open({ protocol: 'udp', address: placeOf('web').ip, port: 8080 });
  const other = await placeOf('client').peer.open({ protocol: 'udp', address: placeOf('guest').ip, port: 8080 });
  expect(await flow.say()).toMatch(/^web /);
  await enforce({});
  expect(await flow.say()).toBe('timeout');
  expect(await other.say()).toMatch(/^guest /);
  await enforce({ ingress: [{ from: [client] }] });
  expect(await flow.say()).toMatch(/^web /);
  await flow.close();
  await other.close();
}, 60_000);
