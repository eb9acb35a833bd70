import { expect, test } from 'vitest';
import { type Attachment, parseAttachment } from './attachments.ts';
import { hostPortRules, hostPortSection, udpFrontendsIn } from './host-ports.ts';
import { podElements, podRules } from './rules.ts';

const IPV4 = { family: 'IPv4', cidr: '10.1.0.0/16' } as const;
const IPV6 = { family: 'IPv6', cidr: 'fd00::/64' } as const;

const pod = (name: string, more: Partial<Attachment> = {}): Attachment => ({
  sandboxId: name,
  link: `veth-${name}`,
  namespace: `/run/netns/${name}`,
  addresses: ['10.1.0.2', 'fd00::2'],
  hostPorts: [],
  usesPortmap: false,
  attachedAt: 0,
  ...more,
});

function elements(section: ReturnType<typeof hostPortSection>): string[] {
  return [...section.values()].flatMap(({ elements: all = [] }) =>
    all.flatMap(({ set, values }) => [...values].map(([key, value]) => `${set} ${key} : ${value}`)),
  );
}
const portsOf = (...pods: Attachment[]): string[] =>
  elements(
    hostPortSection(
      hostPortRules([IPV4, IPV6], [], undefined),
      [IPV4, IPV6],
      new Map(pods.map((each) => [each.link, each])),
      new Map(),
    ),
  );

test('a host port without a hostIP is open for each address family of the Pod', () => {
  expect(portsOf(pod('a', { hostPorts: [{ protocol: 'udp', hostPort: 53, containerPort: 5353 }] }))).toEqual([
    'host-ports/ports-ip udp . 53 : 10.1.0.2 . 5353',
    'host-ports/ports-ip6 udp . 53 : fd00::2 . 5353',
  ]);
});

test.each([
  ['192.0.2.1', ['host-ports/address-ports-ip 192.0.2.1 . tcp . 80 : 10.1.0.2 . 8080']],
  ['2001:db8::1', ['host-ports/address-ports-ip6 2001:db8::1 . tcp . 80 : fd00::2 . 8080']],
  ['0.0.0.0', ['host-ports/ports-ip tcp . 80 : 10.1.0.2 . 8080']],
  ['::', ['host-ports/ports-ip6 tcp . 80 : fd00::2 . 8080']],
])('a host port with the hostIP %s is open only there', (hostIp, expected) => {
  expect(portsOf(pod('a', { hostPorts: [{ protocol: 'tcp', hostPort: 80, containerPort: 8080, hostIp }] }))).toEqual(
    expected,
  );
});

test('the UDP host ports of a section have the port, its address and the Pod to which it leads', () => {
  const hostPorts = [
    { protocol: 'udp', hostPort: 53, containerPort: 5353 },
    { protocol: 'tcp', hostPort: 53, containerPort: 5353 },
    { protocol: 'udp', hostPort: 54, containerPort: 5354, hostIp: '2001:db8::1' },
  ] as const;
  const rules = hostPortRules([IPV4, IPV6], [], undefined);
  const section = hostPortSection(rules, [IPV4, IPV6], new Map([['a', pod('a', { hostPorts })]]), new Map());
  expect(udpFrontendsIn(section)).toEqual([
    { address: undefined, family: 'IPv4', port: 53, targets: new Set(['10.1.0.2 . 5353']) },
    { address: undefined, family: 'IPv6', port: 53, targets: new Set(['fd00::2 . 5353']) },
    { address: '2001:db8::1', family: 'IPv6', port: 54, targets: new Set(['fd00::2 . 5354']) },
  ]);
});

test('packets to the API reach no host port', () => {
  const { chains = [] } = hostPortRules([IPV4], ['10.2.0.10'], { ips: ['127.0.0.1'], port: 6443 });
  const hooked = chains.filter(({ base }) => base !== undefined);
  expect(hooked.map(({ name, rules }) => [name, rules[0]])).toEqual([
    ['host-ports/prerouting', 'ip daddr { 127.0.0.1 } tcp dport 6443 accept'],
    ['host-ports/output', 'ip daddr { 127.0.0.1 } tcp dport 6443 accept'],
  ]);
});

const inputRules = (options: Partial<Parameters<typeof podRules>[0]>) =>
  podRules({ bridge: 'lp0', ranges: [IPV4, IPV6], serviceIps: [], ...options }).chains?.find(
    ({ name }) => name === 'pods/input',
  )?.rules;

test('packets of other machines to the cluster DNS are dropped', () => {
  expect(inputRules({ serviceIps: ['10.2.0.10'], hasForeignPods: true })).toEqual([
    'iifname != "lo" iifname != @pods/interfaces ip saddr != @pods/foreign-addresses-ip ' +
      'ip daddr { 10.2.0.10 } meta l4proto { tcp, udp } th dport 53 drop',
  ]);
});

test('packets of other machines to the API at an address of a Pod range are dropped', () => {
  const rulesFor = (...ips: string[]) => inputRules({ api: { ips, port: 6443 } });
  expect(rulesFor('127.0.0.1', '10.1.0.1', '192.0.2.1')).toEqual([
    'iifname != "lo" iifname != @pods/interfaces ip daddr { 10.1.0.1 } tcp dport 6443 drop',
  ]);
  expect(rulesFor('0.0.0.0', '2001:db8::1')).toEqual([]);
});

test('a host port of two Pods belongs to the first one', () => {
  const hostPorts = [{ protocol: 'tcp', hostPort: 80, containerPort: 8080 }] as const;
  const [first, second] = [pod('a', { hostPorts }), pod('b', { hostPorts, addresses: ['10.1.0.3'] })];
  expect(portsOf(first, second)).toEqual(portsOf(first));
  expect(portsOf(second)).toEqual(['host-ports/ports-ip tcp . 80 : 10.1.0.3 . 8080']);
});

test('a section has the same parts as before for Pods whose host ports have not changed', () => {
  const hostPorts = [{ protocol: 'tcp', hostPort: 80, containerPort: 8080 }] as const;
  const rules = hostPortRules([IPV4], [], undefined);
  const [first, second] = [pod('a', { hostPorts }), pod('b', { hostPorts })];
  const before = hostPortSection(
    rules,
    [IPV4],
    new Map([
      ['a', first],
      ['b', second],
    ]),
    new Map(),
  );
  const after = hostPortSection(
    rules,
    [IPV4],
    new Map([
      ['b', second],
      ['a', first],
    ]),
    before,
  );
  expect(after.get('rules')).toBe(rules);
  expect(after.get('a')).not.toBe(before.get('a'));
  const again = hostPortSection(
    rules,
    [IPV4],
    new Map([
      ['b', second],
      ['a', first],
    ]),
    after,
  );
  expect([...again.values()].every((part) => [...after.values()].includes(part))).toBe(true);
});

test('the addresses of a Pod that the rules accept are those of the Pod ranges', () => {
  const only4 = podElements(pod('a'), [IPV4]);
  expect(elements(new Map([['a', only4]]))).toEqual([
    'pods/interfaces "veth-a" : ',
    'pods/addresses-ip "veth-a" . 10.1.0.2 : ',
  ]);
});

test("libcni's record of a sandbox contains its interface, addresses and host ports", () => {
  const record = {
    kind: 'cniCacheV1',
    containerId: 'abc',
    config: Buffer.from('{"plugins":[{"type":"ptp"}]}').toString('base64'),
    capabilityArgs: {
      portMappings: [
        { HostPort: 80, ContainerPort: 8080, Protocol: 'TCP', HostIP: '' },
        { hostPort: 53, containerPort: 5353, protocol: 'udp', hostIP: '192.0.2.1' },
        { hostPort: 53, containerPort: 5353, protocol: 'udp', hostIP: 'FD00:0::9' },
        { HostPort: 0, ContainerPort: 8080, Protocol: 'tcp', HostIP: '' },
      ],
    },
    result: {
      interfaces: [{ name: 'lp0' }, { name: 'veth1' }, { name: 'eth0', sandbox: '/run/netns/x' }],
      ips: [{ address: '10.1.0.2/16' }, { address: 'FD00:0::2/64' }],
    },
  };
  expect(parseAttachment(JSON.stringify(record), 7)).toEqual({
    sandboxId: 'abc',
    link: 'veth1',
    namespace: '/run/netns/x',
    addresses: ['10.1.0.2', 'fd00::2'],
    hostPorts: [
      { protocol: 'tcp', hostPort: 80, containerPort: 8080 },
      { protocol: 'udp', hostPort: 53, containerPort: 5353, hostIp: '192.0.2.1' },
      { protocol: 'udp', hostPort: 53, containerPort: 5353, hostIp: 'fd00::9' },
    ],
    usesPortmap: false,
    attachedAt: 7,
  });
  expect(parseAttachment('{"kind":"cniCa', 7)).toBeUndefined();
  expect(parseAttachment(JSON.stringify({ ...record, result: {} }), 7)).toBeUndefined();
});
