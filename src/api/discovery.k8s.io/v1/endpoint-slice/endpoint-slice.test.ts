import { describe, expect, it } from 'vitest';
import { created, headings, row, updated } from '../../../testing.ts';
import { endpointSliceKind } from './index.ts';
import { MANAGED_BY_LABEL, MIRRORING_CONTROLLER, SLICE_CONTROLLER } from './labels.ts';

const endpoint = { addresses: ['10.0.0.1'] };
const slice = (body: object = {}) => ({ addressType: 'IPv4', endpoints: [endpoint], ...body });

it('a new EndpointSlice gets its defaults', () => {
  const { object } = created(endpointSliceKind, {
    addressType: 'IPv4',
    ports: [{}, { name: 'a', port: 80, protocol: 'UDP' }],
  });
  expect(object.endpoints).toEqual([]);
  expect(object.ports).toEqual([
    { name: '', protocol: 'TCP' },
    { name: 'a', port: 80, protocol: 'UDP' },
  ]);
});

it('the topology of v1beta1 and hints for nodes are dropped, and hints for zones are stored', () => {
  const hints = { forZones: [{ name: 'a' }], forNodes: [{ name: 'n' }] };
  const full = { ...endpoint, deprecatedTopology: { a: 'b' }, hints };
  const stored = [{ ...endpoint, hints: { forZones: [{ name: 'a' }] } }];
  expect(created(endpointSliceKind, slice({ endpoints: [full] })).object.endpoints).toEqual(stored);
  expect(updated(endpointSliceKind, slice(), slice({ endpoints: [full] })).object.endpoints).toEqual(stored);
});

describe('the generation', () => {
  it.each<[string, object, number]>([
    ['another endpoint', { endpoints: [{ addresses: ['10.0.0.2'] }] }, 2],
    ['a port', { ports: [{ port: 80 }] }, 2],
    ['a label', { metadata: { labels: { a: 'b' } } }, 2],
    ['an annotation', { metadata: { annotations: { a: 'b' } } }, 1],
  ])('an update that adds %s', (_, body, generation) => {
    expect(updated(endpointSliceKind, slice(), slice(body)).object.metadata.generation).toBe(generation);
  });
});

describe('validation', () => {
  const many = <T>(count: number, make: (index: number) => T): T[] =>
    Array.from({ length: count }, (_, at) => make(at));
  it.each<[string, object, unknown[]]>([
    ['endpoints', {}, []],
    ['neither endpoints nor ports', { endpoints: [] }, []],
    [
      'every field of an endpoint',
      {
        endpoints: [
          {
            addresses: ['10.0.0.1', '10.0.0.2'],
            conditions: { ready: true, serving: true, terminating: false },
            hostname: 'a',
            nodeName: 'n.b',
            zone: 'Zone A',
            targetRef: { kind: 'Pod', name: 'p' },
          },
        ],
      },
      [],
    ],
    ['no address type', { addressType: '' }, ['addressType: Required value']],
    [
      'an unknown address type',
      { addressType: 'IP' },
      ['addressType: Unsupported value: "IP": supported values: "FQDN", "IPv4", "IPv6"'],
    ],
    [
      'an endpoint without addresses',
      { endpoints: [{ addresses: [] }] },
      ['endpoints[0].addresses: Required value: must contain at least 1 address'],
    ],
    [
      'too many addresses',
      { endpoints: [{ addresses: many(101, (index) => `10.0.0.${index}`) }] },
      ['endpoints[0].addresses: Too many: 101: must have at most 100 items'],
    ],
    [
      'too many endpoints',
      { endpoints: many(1001, () => endpoint) },
      ['endpoints: Too many: 1001: must have at most 1000 items'],
    ],
    ['too many ports', { ports: many(20_001, () => ({})) }, ['ports: Too many: 20001: must have at most 20000 items']],
    [
      'addresses that are not valid',
      { endpoints: [{ addresses: ['a', 'fd00::1', '127.0.0.1'] }] },
      [
        'endpoints[0].addresses[0]: Invalid value: "a": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
        'endpoints[0].addresses[1]: Invalid value: "fd00::1": must be an IPv4 address',
        'endpoints[0].addresses[2]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
      ],
    ],
    [
      'IPv6 addresses that are not valid',
      { addressType: 'IPv6', endpoints: [{ addresses: ['fd00::1', '10.0.0.1', '::ffff:10.0.0.1', 'fe80::1'] }] },
      [
        'endpoints[0].addresses[1]: Invalid value: "10.0.0.1": must be an IPv6 address',
        'endpoints[0].addresses[2]: Invalid value: "::ffff:10.0.0.1": must not be an IPv4-mapped IPv6 address',
        'endpoints[0].addresses[3]: Invalid value: "fe80::1": may not be in the link-local range (169.254.0.0/16, fe80::/10)',
      ],
    ],
    [
      'domain names that are not valid',
      { addressType: 'FQDN', endpoints: [{ addresses: ['a.b', 'a.b.', '', 'a', 'A.b', `${'a'.repeat(64)}.b`] }] },
      [
        'endpoints[0].addresses[2]: Required value',
        'endpoints[0].addresses[3]: Invalid value: "a": should be a domain with at least two segments separated by dots',
        expect.stringContaining('endpoints[0].addresses[4]: Invalid value: "A.b": a lowercase RFC 1123 subdomain'),
        `endpoints[0].addresses[5]: Invalid value: "${'a'.repeat(64)}": must be no more than 63 characters`,
      ],
    ],
    [
      'a host name, a node name and hints that are not valid',
      {
        endpoints: [
          {
            ...endpoint,
            hostname: 'a.b',
            nodeName: 'A',
            hints: { forZones: [{ name: 'a' }, { name: 'a' }, { name: '-' }] },
          },
        ],
      },
      [
        expect.stringContaining('endpoints[0].nodeName: Invalid value: "A"'),
        'endpoints[0].hostname: Invalid value: "a.b": must not contain dots',
        'endpoints[0].hints.forZones[1].name: Duplicate value: "a"',
        expect.stringContaining('endpoints[0].hints.forZones[2].name: Invalid value: "-"'),
      ],
    ],
    [
      'too many hints',
      { endpoints: [{ ...endpoint, hints: { forZones: many(9, (index) => ({ name: `z${index}` })) } }] },
      ['endpoints[0].hints.forZones: Too many: 9: must have at most 8 items'],
    ],
    [
      'ports that are not valid',
      { ports: [{}, { name: '' }, { name: 'A', protocol: 'ICMP', appProtocol: '-' }] },
      [
        'ports[1].name: Duplicate value: ""',
        expect.stringContaining('ports[2].name: Invalid value: "A"'),
        'ports[2].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"',
        expect.stringContaining('ports[2].appProtocol: Invalid value: "-"'),
      ],
    ],
  ])('the errors of an EndpointSlice with %s are reported', (_, body, expected) => {
    expect(created(endpointSliceKind, slice(body)).errors).toEqual(expected);
  });
  it('the address type of an EndpointSlice cannot change', () => {
    const changed = slice({ addressType: 'IPv6', endpoints: [] });
    expect(updated(endpointSliceKind, slice(), changed).errors).toEqual([
      'addressType: Invalid value: "IPv6": field is immutable',
    ]);
  });
});

describe('warnings', () => {
  const warningsOf = (body: object) => {
    const { object } = created(endpointSliceKind, slice(body));
    return { create: endpointSliceKind.warnings?.(object), update: endpointSliceKind.warnings?.(object, object) };
  };
  it('an EndpointSlice of domain names causes a warning on create', () => {
    expect(warningsOf({ addressType: 'FQDN', endpoints: [{ addresses: ['a.b'] }] })).toEqual({
      create: ['spec.addressType: FQDN endpoints are deprecated'],
      update: [],
    });
  });
  const ipv6 = { addressType: 'IPv6', endpoints: [{ addresses: ['fd00::1', 'FD00::1'] }] };
  it('an unusual form of an IPv6 address causes a warning', () => {
    const text = 'endpoints[0].addresses[1]: IPv6 address "FD00::1" should be in RFC 5952 canonical format ("fd00::1")';
    expect(warningsOf(ipv6)).toEqual({ create: [text], update: [text] });
  });
  it.each([SLICE_CONTROLLER, MIRRORING_CONTROLLER])('an EndpointSlice of %s causes no warnings', (manager) => {
    const metadata = { labels: { [MANAGED_BY_LABEL]: manager } };
    expect(warningsOf({ ...ipv6, metadata })).toEqual({ create: [], update: [] });
  });
});

describe('the table', () => {
  it('the table of EndpointSlices has the columns of upstream', () => {
    expect(headings(endpointSliceKind).all).toBe('NAME | ADDRESSTYPE | PORTS | ENDPOINTS | AGE');
  });
  it.each<[string, object, string, string]>([
    ['neither endpoints nor ports', { endpoints: [] }, '<unset>', '<unset>'],
    ['a port with a name only', { ports: [{ name: 'a' }, { port: 80 }] }, 'a,80', '10.0.0.1'],
    [
      'more values than fit',
      {
        endpoints: [{ addresses: ['10.0.0.1', '10.0.0.2'] }, { addresses: ['10.0.0.3', '10.0.0.4'] }],
        ports: [1, 2, 3, 4, 5].map((port) => ({ name: `p${port}`, port })),
      },
      '1,2,3 + 2 more...',
      '10.0.0.1,10.0.0.2,10.0.0.3 + 1 more...',
    ],
  ])('the row of an EndpointSlice with %s', (_, body, ports, endpoints) => {
    expect(row(endpointSliceKind, slice(body))).toEqual(['a', 'IPv4', ports, endpoints, '<unknown>']);
  });
});
