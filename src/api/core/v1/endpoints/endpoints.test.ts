import { describe, expect, it } from 'vitest';
import type { EndpointSubset, Endpoints } from '../../../generated/types.ts';
import { created, headings, row, updated } from '../../../testing.ts';
import { endpointsKind } from './index.ts';
import { ENDPOINTS_CONTROLLER, ENDPOINTS_MANAGED_BY } from './labels.ts';

const PORT = { port: 80, protocol: 'TCP' };
const at = (...ips: string[]) => ips.map((ip) => ({ ip }));

it('a port of Endpoints has the protocol TCP by default', () => {
  const subsets = [{ addresses: at('10.0.0.1'), ports: [{ port: 80 }, { name: 'b', port: 81, protocol: 'UDP' }] }];
  expect(created(endpointsKind, { subsets }).object.subsets?.[0]?.ports).toEqual([
    PORT,
    { name: 'b', port: 81, protocol: 'UDP' },
  ]);
});

describe('validation', () => {
  const IP_TEXT = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
  it.each<[string, EndpointSubset[], string[]]>([
    ['no subsets', [], []],
    ['addresses without ports', [{ addresses: at('10.0.0.1') }], []],
    ['addresses that are not ready', [{ notReadyAddresses: at('10.0.0.1', 'fd00::1'), ports: [PORT] }], []],
    [
      'neither addresses nor notReadyAddresses',
      [{ ports: [PORT] }],
      ['subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`'],
    ],
    [
      'addresses that are not valid',
      [
        {
          addresses: at('a', ''),
          notReadyAddresses: at('127.0.0.1', '169.254.1.1', '224.0.0.1', '::', '::ffff:10.0.0.1'),
        },
      ],
      [
        `subsets[0].addresses[0].ip: Invalid value: "a": ${IP_TEXT}`,
        `subsets[0].addresses[1].ip: Invalid value: "": ${IP_TEXT}`,
        'subsets[0].notReadyAddresses[0].ip: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
        'subsets[0].notReadyAddresses[1].ip: Invalid value: "169.254.1.1": may not be in the link-local range (169.254.0.0/16, fe80::/10)',
        'subsets[0].notReadyAddresses[2].ip: Invalid value: "224.0.0.1": may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)',
        'subsets[0].notReadyAddresses[3].ip: Invalid value: "::": may not be unspecified (0.0.0.0 or ::)',
        'subsets[0].notReadyAddresses[4].ip: Invalid value: "::ffff:10.0.0.1": must not be an IPv4-mapped IPv6 address',
      ],
    ],
    [
      'a host name and a node name that are not valid',
      [{ addresses: [{ ip: '10.0.0.1', hostname: 'a.b', nodeName: 'A' }] }],
      [
        'subsets[0].addresses[0].hostname: Invalid value: "a.b": must not contain dots',
        expect.stringContaining('subsets[0].addresses[0].nodeName: Invalid value: "A": a lowercase RFC 1123 subdomain'),
      ],
    ],
    [
      'two ports without names',
      [{ addresses: at('10.0.0.1'), ports: [PORT, { name: 'a', port: 81 }] }],
      ['subsets[0].ports[0].name: Required value'],
    ],
    [
      'a port that is not valid',
      [{ addresses: at('10.0.0.1'), ports: [{ name: 'A', port: 0, protocol: 'ICMP', appProtocol: '-' }] }],
      [
        expect.stringContaining('subsets[0].ports[0].name: Invalid value: "A": a lowercase RFC 1123 label'),
        'subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive',
        'subsets[0].ports[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"',
        expect.stringContaining('subsets[0].ports[0].appProtocol: Invalid value: "-"'),
      ],
    ],
  ])('the errors of Endpoints with %s are reported', (_, subsets, expected) => {
    expect(created(endpointsKind, { subsets }).errors).toEqual(expected);
  });
  it('an update that leaves invalid subsets unchanged is valid', () => {
    const subsets = [{ addresses: at('127.0.0.1') }];
    expect(updated(endpointsKind, { subsets }, { subsets, metadata: { labels: { a: 'b' } } }).errors).toEqual([]);
    expect(updated(endpointsKind, { subsets }, { subsets: [{ addresses: at('127.0.0.2') }] }).errors).toHaveLength(1);
  });
});

describe('warnings', () => {
  const warningsOf = (labels: Record<string, string> = {}) =>
    endpointsKind.warnings?.(
      created(endpointsKind, {
        metadata: { labels },
        subsets: [{ addresses: at('fd00::1', 'FD00:0::1'), notReadyAddresses: at('fd00::0:2') }],
      }).object,
    );
  it('unusual forms of IPv6 addresses cause warnings', () => {
    expect(warningsOf()).toEqual([
      'subsets[0].addresses[1].ip: IPv6 address "FD00:0::1" should be in RFC 5952 canonical format ("fd00::1")',
      'subsets[0].notReadyAddresses[0].ip: IPv6 address "fd00::0:2" should be in RFC 5952 canonical format ("fd00::2")',
    ]);
  });
  it('Endpoints of the controller cause no warnings', () => {
    expect(warningsOf({ [ENDPOINTS_MANAGED_BY]: ENDPOINTS_CONTROLLER })).toEqual([]);
  });
});

describe('the table', () => {
  it('the table of Endpoints has the columns of upstream', () => {
    expect(headings(endpointsKind).all).toBe('NAME | ENDPOINTS | AGE');
  });
  it.each<[string, EndpointSubset[] | undefined, string]>([
    ['no subsets', undefined, '<none>'],
    ['no ready address', [{ notReadyAddresses: at('10.0.0.1'), ports: [PORT] }], ''],
    ['addresses without ports', [{ addresses: at('10.0.0.1', '10.0.0.2') }], '10.0.0.1,10.0.0.2'],
    ['IPv6 addresses', [{ addresses: at('fd00::1'), ports: [PORT] }], '[fd00::1]:80'],
    [
      'more addresses than fit',
      [
        { addresses: at('10.0.0.1', '10.0.0.2'), ports: [PORT, { name: 'b', port: 81 }] },
        { addresses: at('10.0.0.3') },
      ],
      '10.0.0.1:80,10.0.0.2:80,10.0.0.1:81 + 2 more...',
    ],
  ])('the cell of Endpoints with %s', (_, subsets, expected) => {
    expect(row(endpointsKind, { ...(subsets === undefined ? {} : { subsets }) })[1]).toBe(expected);
  });
});

it('stored Endpoints have no empty list of subsets', () => {
  const endpoints: Endpoints = { apiVersion: 'v1', kind: 'Endpoints', metadata: { name: 'a' }, subsets: [] };
  endpointsKind.canonicalize?.(endpoints);
  expect(endpoints).not.toHaveProperty('subsets');
});
