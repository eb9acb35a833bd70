import { describe, expect, it, test } from 'vitest';
import type { NetworkPolicySpec } from '../../../generated/types.ts';
import { created, headings, row, updated } from '../../../testing.ts';
import { networkPolicyKind } from './index.ts';

const podSelector = {};
const errorsOf = (spec: object): string[] => created(networkPolicyKind, { spec: { podSelector, ...spec } }).errors;
const inFrom = (peer: object) => ({ ingress: [{ from: [peer] }] });
const inPorts = (port: object) => ({ egress: [{ ports: [port] }] });

describe('defaults of NetworkPolicies', () => {
  test.each<[string, object, Partial<NetworkPolicySpec>]>([
    ['no rule', {}, { policyTypes: ['Ingress'] }],
    ['a rule for egress', { egress: [{}] }, { policyTypes: ['Ingress', 'Egress'] }],
    ['a type', { egress: [{}], policyTypes: ['Egress'] }, { policyTypes: ['Egress'] }],
    [
      'ports',
      { ingress: [{ ports: [{ port: 80 }, { protocol: 'UDP' }] }] },
      {
        ingress: [{ ports: [{ port: 80, protocol: 'TCP' }, { protocol: 'UDP' }] }],
      },
    ],
  ])('a NetworkPolicy with %s gets its types and protocols', (_, spec, expected) => {
    expect(created(networkPolicyKind, { spec: { podSelector, ...spec } }).object.spec).toMatchObject(expected);
  });

  it('the generation of a NetworkPolicy counts the changes of its spec', () => {
    const from = { spec: { podSelector } };
    expect(
      updated(networkPolicyKind, from, { ...from, metadata: { labels: { a: 'b' } } }).object.metadata.generation,
    ).toBe(1);
    expect(updated(networkPolicyKind, from, { spec: { podSelector, egress: [{}] } }).object.metadata.generation).toBe(
      2,
    );
  });
});

test.each<[string, object, unknown[]]>([
  ['an empty selector', {}, []],
  [
    'an invalid selector',
    { podSelector: { matchLabels: { a: '-' } } },
    [expect.stringMatching(/^spec\.podSelector\.matchLabels: Invalid value: "-": a valid label must be/)],
  ],
  ['an empty rule', { ingress: [{}] }, []],
  ['a peer without a field', inFrom({}), ['spec.ingress[0].from[0]: Required value: must specify a peer']],
  ['a peer with two selectors', inFrom({ podSelector: {}, namespaceSelector: {} }), []],
  [
    'a peer with a range and a selector',
    inFrom({ podSelector: {}, ipBlock: { cidr: '10.0.0.0/8' } }),
    ['spec.ingress[0].from[0]: Forbidden: may not specify both ipBlock and another peer'],
  ],
  [
    'a peer with an invalid selector',
    inFrom({ namespaceSelector: { matchExpressions: [{ key: 'a', operator: 'Odd' }] } }),
    [
      'spec.ingress[0].from[0].namespaceSelector.matchExpressions[0].operator: Invalid value: "Odd": not a valid selector operator',
    ],
  ],
  ['no range', inFrom({ ipBlock: { cidr: '' } }), ['spec.ingress[0].from[0].ipBlock.cidr: Required value']],
  [
    'an invalid range',
    { egress: [{ to: [{ ipBlock: { cidr: '10.0.0.0', except: ['x'] } }] }] },
    [
      'spec.egress[0].to[0].ipBlock.cidr: Invalid value: "10.0.0.0": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
    ],
  ],
  [
    'exceptions',
    inFrom({ ipBlock: { cidr: '10.0.0.0/8', except: ['10.1.0.0/16', '10.0.0.0/8', '11.0.0.0/16', 'x', 'fd00::/64'] } }),
    [
      'spec.ingress[0].from[0].ipBlock.except[1]: Invalid value: "10.0.0.0/8": must be a strict subset of `cidr`',
      'spec.ingress[0].from[0].ipBlock.except[2]: Invalid value: "11.0.0.0/16": must be a strict subset of `cidr`',
      'spec.ingress[0].from[0].ipBlock.except[3]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
      'spec.ingress[0].from[0].ipBlock.except[4]: Invalid value: "fd00::/64": must be a strict subset of `cidr`',
    ],
  ],
  ['an IPv6 range with an exception', inFrom({ ipBlock: { cidr: 'fd00::/48', except: ['fd00:0:0:1::/64'] } }), []],
  ['a port range', inPorts({ port: 80, endPort: 90, protocol: 'SCTP' }), []],
  ['a named port', inPorts({ port: 'web' }), []],
  [
    'an unknown protocol',
    inPorts({ protocol: 'ICMP' }),
    ['spec.egress[0].ports[0].protocol: Unsupported value: "ICMP": supported values: "TCP", "UDP", "SCTP"'],
  ],
  [
    'ports that are too large',
    inPorts({ port: 65_536, endPort: 65_537 }),
    [
      'spec.egress[0].ports[0].port: Invalid value: 65536: must be between 1 and 65535, inclusive',
      'spec.egress[0].ports[0].endPort: Invalid value: 65537: must be between 1 and 65535, inclusive',
    ],
  ],
  [
    'a port range that ends too early',
    inPorts({ port: 80, endPort: 79 }),
    ['spec.egress[0].ports[0].endPort: Invalid value: 79: must be greater than or equal to `port`'],
  ],
  [
    'a range from a named port',
    inPorts({ port: 'web', endPort: 80 }),
    ['spec.egress[0].ports[0].endPort: Invalid value: 80: may not be specified when `port` is non-numeric'],
  ],
  [
    'a range from no port',
    inPorts({ endPort: 80 }),
    ['spec.egress[0].ports[0].endPort: Invalid value: 80: may not be specified when `port` is not specified'],
  ],
  [
    'an invalid port name',
    inPorts({ port: 'a--b' }),
    ['spec.egress[0].ports[0].port: Invalid value: "a--b": must not contain consecutive hyphens'],
  ],
  [
    'an unknown type',
    { policyTypes: ['Odd'] },
    ['spec.policyTypes[0]: Unsupported value: "Odd": supported values: "Ingress", "Egress"'],
  ],
  [
    'three types',
    { policyTypes: ['Ingress', 'Egress', 'Ingress'] },
    ['spec.policyTypes: Invalid value: ["Ingress","Egress","Ingress"]: may not specify more than two policyTypes'],
  ],
])('the errors of a NetworkPolicy with %s', (_, spec, errors) => {
  expect(errorsOf(spec)).toEqual(errors);
});

it('an update may keep a range that is no longer valid', () => {
  const spec = { podSelector, ...inFrom({ ipBlock: { cidr: 'x' } }) };
  expect(updated(networkPolicyKind, { spec }, { spec }).errors).toEqual([]);
  expect(
    updated(networkPolicyKind, { spec }, { spec: { podSelector, ...inFrom({ ipBlock: { cidr: 'y' } }) } }).errors,
  ).toHaveLength(1);
});

it('a NetworkPolicy with ambiguous ranges causes warnings', () => {
  const { object } = created(networkPolicyKind, {
    spec: { podSelector, ...inFrom({ ipBlock: { cidr: '10.0.0.1/8', except: ['10.1.0.1/16'] } }) },
  });
  expect(networkPolicyKind.warnings?.(object)).toEqual([
    'spec.ingress[0].from[0].ipBlock.cidr: CIDR value "10.0.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.0.0.1/32"?)',
    'spec.ingress[0].from[0].ipBlock.except[0]: CIDR value "10.1.0.1/16" is ambiguous in this context (should be "10.1.0.0/16" or "10.1.0.1/32"?)',
  ]);
});

it('the table of NetworkPolicies shows the selectors', () => {
  expect(networkPolicyKind.shortNames).toEqual(['netpol']);
  expect(headings(networkPolicyKind).all).toBe('NAME | POD-SELECTOR | AGE');
  const metadata = { creationTimestamp: '2026-01-31T11:59:00Z' };
  const rowOf = (selector: object) => row(networkPolicyKind, { metadata, spec: { podSelector: selector } });
  expect(rowOf({})).toEqual(['a', '<none>', '60s']);
  expect(rowOf({ matchLabels: { a: 'b' } })).toEqual(['a', 'a=b', '60s']);
});
