import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { IPBlock, NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort } from '../../api/generated/types.ts';
import { parseIp, parseIpRange, rangeContains } from '../../machinery/ip.ts';
import { labelSelectorMatcher } from '../../machinery/labels.ts';
import type { Section } from '../nftables/section.ts';
import { changeText } from '../nftables/transaction-fixture.ts';
import { PoliciesSection, type PolicyPod } from './policies-section.ts';

interface Packet {
  from: string;
  to: string;
  protocol: 'TCP' | 'UDP' | 'SCTP';
  port: number;
}

const SOURCE_PORT = 80;
const isIn = (cidr: string, address: string): boolean => {
  const [range, ip] = [parseIpRange(cidr), parseIp(address)];
  return range !== undefined && ip !== undefined && rangeContains(range, ip);
};

interface Rules {
  chains: ReadonlyMap<string, readonly string[]>;
  sets: ReadonlyMap<string, ReadonlyMap<string, string>>;
}

function rulesOf(section: Section): Rules {
  const chains = new Map(
    [...section.values()].flatMap(({ chains = [] }) => chains.map((each) => [each.name, each.rules])),
  );
  const sets = new Map<string, Map<string, string>>();
  for (const { set, values } of [...section.values()].flatMap(({ elements = [] }) => elements)) {
    const known = sets.get(set) ?? new Map<string, string>();
    for (const [key, value] of values) {
      if (known.has(key)) throw new Error(`${set} has ${key} twice`);
      known.set(key, value);
    }
    sets.set(set, known);
  }
  return { chains, sets };
}

function accepts({ chains, sets }: Rules, packet: Packet, isReply: boolean): boolean {
  const family = packet.from.includes(':') ? 'ip6' : 'ip';
  const [source, target] = isReply ? [packet.to, packet.from] : [packet.from, packet.to];
  const [sport, dport] = isReply ? [packet.port, SOURCE_PORT] : [SOURCE_PORT, packet.port];
  const protocol = packet.protocol.toLowerCase();
  /** Returns the value of an expression such as `ip saddr . tcp dport`; undefined if the packet does not have it. */
  const fieldsOf = (expression: string): string | undefined => {
    const values = expression.split(' . ').map((each) => {
      const [of, field] = each.split(' ');
      if (of === family) return field === 'saddr' ? source : target;
      if (of === protocol) return String(field === 'sport' ? sport : dport);
      return undefined;
    });
    return values.includes(undefined) ? undefined : values.join(' . ');
  };
  const inRange = (value: string, text: string): boolean => {
    if (text.includes('/')) return isIn(text, value);
    const [first, last = first] = text.split('-').map(Number) as [number, number?];
    return Number(value) >= first && Number(value) <= last;
  };
  const run = (name: string): 'accept' | 'drop' | undefined => {
    for (const rule of chains.get(name) ?? expect.fail(`no chain ${name}`)) {
      const verdict = judge(rule);
      if (verdict !== undefined) return verdict === 'return' ? undefined : verdict;
    }
    return undefined;
  };
  const act = (verb: string, chain = ''): 'accept' | 'drop' | 'return' | undefined => {
    if (verb === 'jump') return run(chain);
    if (verb === 'goto') return run(chain) ?? 'return';
    return verb as 'accept' | 'drop';
  };
  const judge = (rule: string): ReturnType<typeof act> => {
    if (rule.startsWith('ct state related ')) return undefined;
    let rest = rule;
    for (;;) {
      const match =
        /^ct direction (?<direction>reply) (?<rest>.*)$/.exec(rest) ??
        /^meta l4proto (?<protocol>\w+) (?<rest>.*)$/.exec(rest) ??
        /^(?<of>(?:\w+ [sd](?:addr|port)(?: \. )?)+) vmap @(?<map>\S+)$/.exec(rest) ??
        /^(?<of>(?:\w+ [sd](?:addr|port)(?: \. )?)+) (?<not>!= )?(?:@(?<set>\S+)|\{ (?<list>[^}]*) \}|(?<one>\S+)) (?<rest>.*)$/.exec(
          rest,
        );
      if (match?.groups === undefined) return act(...(rest.split(' ') as [string, string?]));
      const { direction, protocol: given, of = '', map, not, set, list, one = '', rest: next = '' } = match.groups;
      const value = fieldsOf(of);
      if (map !== undefined) {
        const verdict = value === undefined ? undefined : sets.get(map)?.get(value);
        return verdict === undefined ? undefined : act(...(verdict.split(' ') as [string, string]));
      }
      const matches =
        direction !== undefined
          ? isReply
          : given !== undefined
            ? given === protocol
            : value !== undefined &&
              (set === undefined
                ? (list ?? one).split(', ').some((each) => inRange(value, each))
                : sets.get(set)?.has(value) === true) ===
                (not === undefined);
      if (!matches) return undefined;
      rest = next;
    }
  };
  return (['policies/egress', 'policies/ingress'] as const).every((chain) => run(chain) !== 'drop');
}

/** Judges the packet by the semantics of NetworkPolicies, without any index. */
function isAllowed(packet: Packet, { pods, policies, namespaces }: World): boolean {
  const podAt = (address: string): PolicyPod | undefined => pods.find(({ addresses }) => addresses.includes(address));
  if (packet.from === packet.to && podAt(packet.from) !== undefined) return true;
  const peerMatches = (
    { ipBlock, podSelector, namespaceSelector }: NetworkPolicyPeer,
    address: string,
    own: string,
  ) => {
    if (ipBlock !== undefined)
      return isIn(ipBlock.cidr, address) && !(ipBlock.except ?? []).some((each) => isIn(each, address));
    const pod = podAt(address);
    if (pod === undefined) return false;
    const inNamespace =
      namespaceSelector === undefined
        ? pod.namespace === own
        : labelSelectorMatcher(namespaceSelector)(namespaces[pod.namespace] ?? {});
    return inNamespace && labelSelectorMatcher(podSelector ?? {})(pod.labels);
  };
  const portMatches = ({ protocol, port, endPort }: NetworkPolicyPort): boolean => {
    if (protocol !== packet.protocol) return false;
    if (port === undefined) return true;
    if (typeof port === 'number') return packet.port >= port && packet.port <= (endPort ?? port);
    const named = podAt(packet.to)?.ports ?? [];
    return named.some((each) => each.name === port && each.protocol === protocol && each.port === packet.port);
  };
  const allows = (type: 'Ingress' | 'Egress', address: string, peer: string): boolean => {
    const pod = podAt(address);
    if (pod === undefined) return true;
    const applying = policies.filter(
      ({ metadata, spec }) =>
        metadata.namespace === pod.namespace &&
        spec?.policyTypes?.includes(type) &&
        labelSelectorMatcher(spec.podSelector)(pod.labels),
    );
    if (applying.length === 0) return true;
    return applying.some(({ metadata, spec }) =>
      (type === 'Ingress'
        ? (spec?.ingress ?? []).map(({ from, ports }) => ({ peers: from ?? [], ports: ports ?? [] }))
        : (spec?.egress ?? []).map(({ to, ports }) => ({ peers: to ?? [], ports: ports ?? [] }))
      ).some(
        ({ peers, ports }) =>
          (peers.length === 0 || peers.some((each) => peerMatches(each, peer, metadata.namespace ?? ''))) &&
          (ports.length === 0 || ports.some(portMatches)),
      ),
    );
  };
  return allows('Egress', packet.from, packet.to) && allows('Ingress', packet.to, packet.from);
}

interface World {
  pods: PolicyPod[];
  policies: NetworkPolicy[];
  namespaces: Record<string, Record<string, string>>;
}

const NAMESPACES = ['n1', 'n2'];
const labels = fc.dictionary(fc.constantFrom('a', 'b'), fc.constantFrom('1', '2'), { maxKeys: 2 });
const selector = fc.oneof(
  fc.constant({}),
  labels.map((matchLabels) => ({ matchLabels })),
);
const portName = fc.constantFrom('web', 'dns');
const portNumber = fc.constantFrom(53, 80, 81, 443);
const protocol = fc.constantFrom('TCP' as const, 'UDP' as const, 'SCTP' as const);
const blocks = fc.constantFrom<IPBlock[]>(
  { cidr: '0.0.0.0/0', except: ['10.0.0.0/30', '10.0.0.0/31', '10.0.0.6/32'] },
  { cidr: '10.0.0.9/29' },
  { cidr: 'fd00::/16', except: ['fd00::2/128'] },
  { cidr: '::/0' },
);
const peer = fc.oneof(
  blocks.map((ipBlock) => ({ ipBlock })),
  selector.map((podSelector) => ({ podSelector })),
  selector.map((namespaceSelector) => ({ namespaceSelector })),
  fc.record({ namespaceSelector: selector, podSelector: selector }),
);
const port: fc.Arbitrary<NetworkPolicyPort> = fc.oneof(
  fc.record({ protocol }),
  fc.record({ protocol, port: fc.oneof(portNumber, portName) }),
  fc.record({ protocol, port: fc.constant(60), endPort: portNumber.map((end) => Math.max(end, 60)) }),
);
const lists = [fc.array(peer, { maxLength: 3 }), fc.array(port, { maxLength: 3 })] as const;
const spec = fc.record({
  podSelector: selector,
  policyTypes: fc.constantFrom(['Ingress'], ['Egress'], ['Ingress', 'Egress']),
  ingress: fc.array(fc.record({ from: lists[0], ports: lists[1] }), { maxLength: 2 }),
  egress: fc.array(fc.record({ to: lists[0], ports: lists[1] }), { maxLength: 2 }),
});
const policyOf = (name: string, namespace: string, spec: unknown): NetworkPolicy =>
  ({ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { name, namespace }, spec }) as NetworkPolicy;
const podSpec = fc.record({
  namespace: fc.constantFrom(...NAMESPACES),
  labels,
  ports: fc.uniqueArray(fc.record({ name: portName, protocol, port: portNumber }), {
    maxLength: 2,
    selector: ({ name }) => name,
  }),
});
const world: fc.Arbitrary<World> = fc.record({
  pods: fc
    .array(podSpec, { minLength: 1, maxLength: 5 })
    .map((pods) => pods.map((each, index) => ({ ...each, addresses: [`10.0.0.${index + 1}`, `fd00::${index + 1}`] }))),
  policies: fc
    .array(fc.tuple(fc.constantFrom(...NAMESPACES), spec), { maxLength: 4 })
    .map((all) => all.map(([namespace, each], index) => policyOf(`p${index}`, namespace, each))),
  namespaces: fc.record({ n1: labels, n2: labels }),
});
const packet = fc
  .record({
    family: fc.boolean(),
    from: fc.integer({ min: 1, max: 7 }),
    to: fc.integer({ min: 1, max: 7 }),
    protocol,
    port: portNumber,
  })
  .map(({ family, from, to, ...rest }) => ({
    from: family ? `10.0.0.${from}` : `fd00::${from}`,
    to: family ? `10.0.0.${to}` : `fd00::${to}`,
    ...rest,
  }));

function takeIn(section: PoliciesSection, { pods, policies, namespaces }: World): Section {
  for (let index = 0; index < 5; index++) section.setPod(`p${index}`, pods[index]);
  for (let index = 0; index < 4; index++) section.setPolicy(`p${index}`, policies[index]);
  for (const [name, labels] of Object.entries(namespaces)) section.setNamespace(name, labels);
  return section.section();
}

describe('the section of NetworkPolicies', () => {
  it('accepts the packets that the semantics allow, and their replies, also after changes', () => {
    fc.assert(
      fc.property(world, world, fc.array(packet, { minLength: 20, maxLength: 40 }), (first, second, packets) => {
        const section = new PoliciesSection();
        for (const each of [first, second]) {
          const rules = rulesOf(takeIn(section, each));
          const wrong = packets.filter((one) =>
            [false, true].some((isReply) => accepts(rules, one, isReply) !== isAllowed(one, each)),
          );
          expect(wrong).toEqual([]);
        }
      }),
    );
  });

  it('changes only elements for a changed Pod among 1,000 Pods and 100 policies', () => {
    const section = new PoliciesSection();
    const podOf = (index: number, a: string): PolicyPod => ({
      namespace: `n${index % 10}`,
      labels: { a },
      addresses: [`10.1.${index >> 8}.${index & 255}`],
      ports: [],
    });
    for (let index = 0; index < 1000; index++) section.setPod(`p${index}`, podOf(index, String(index % 7)));
    for (let index = 0; index < 100; index++) {
      const from = [{ podSelector: { matchLabels: { a: String(index % 7) } } }];
      const policy = policyOf(`p${index}`, `n${index % 10}`, {
        podSelector: {},
        policyTypes: ['Ingress'],
        ingress: [{ from }],
      });
      section.setPolicy(policy.metadata.name ?? '', policy);
    }
    const before = section.section();
    section.setPod('p5', podOf(5, '0'));
    const after = section.section();
    expect([...after].filter(([name, part]) => before.get(name) !== part).map(([name]) => name)).toEqual([
      'address 10.1.0.5',
    ]);
    expect(
      changeText('t', before, after)
        ?.split('\n')
        .filter((line) => line !== ''),
    ).toEqual([
      expect.stringMatching(/^delete element inet t policies\/peers-\w+-ip \{ 10.1.0.5 \}$/),
      expect.stringMatching(/^add element inet t policies\/peers-\w+-ip \{ 10.1.0.5 \}$/),
    ]);
    expect(section.setPod('p5', podOf(5, '0'))).toBe(false);
  });

  it('gives an address that two Pods report to the Pod that got it last', () => {
    const section = new PoliciesSection();
    section.setPolicy('p', policyOf('p', 'n1', { podSelector: { matchLabels: { a: '1' } }, policyTypes: ['Ingress'] }));
    const pod = (a: string): PolicyPod => ({ namespace: 'n1', labels: { a }, addresses: ['10.0.0.1'], ports: [] });
    section.setPod('old', pod('2'));
    section.setPod('new', pod('1'));
    const ask = (): boolean =>
      accepts(rulesOf(section.section()), { from: '10.0.0.9', to: '10.0.0.1', protocol: 'TCP', port: 80 }, false);
    expect(ask()).toBe(false);
    section.setPod('new', undefined);
    expect(ask()).toBe(true);
  });
});
