import { describe, expect, it } from 'vitest';
import { runAtOnce } from '../../platform/work-in-turns.ts';
import * as steps from './endpoints.ts';
import { type EndpointOptions, endpoint, portOf, serviceOf, sliceOf } from './proxy-fixture.ts';

const endpointsOf = (...args: Parameters<typeof steps.endpointsOf>) => runAtOnce(steps.endpointsOf(...args));
const usableEndpoints = (...args: Parameters<typeof steps.usableEndpoints>) =>
  runAtOnce(steps.usableEndpoints(...args));

const service = serviceOf('web');
const place = { nodeName: 'n1', zone: 'a' };
const addressOf = (index: number): string => `10.0.0.${index + 1}`;

function usable(options: EndpointOptions[], zone: string | undefined = 'a') {
  const slice = sliceOf(
    service,
    options.map((each, index) => endpoint(addressOf(index), each)),
  );
  const found = usableEndpoints(endpointsOf(portOf(80), 'IPv4', [slice], { ...place, zone }), { ...place, zone });
  const indexes = (targets: ReadonlySet<string>): number[] =>
    options.map((_, index) => index).filter((index) => targets.has(`${addressOf(index)} . 8080`));
  return { cluster: indexes(found.cluster), local: indexes(found.local), hasAny: found.hasAny };
}

const READY = { node: 'n2' };
const LOCAL = {};
const UNREADY = { ready: false };
const LEAVING = { node: 'n2', ready: false, serving: true, terminating: true };
const LOCAL_LEAVING = { ...LEAVING, node: 'n1' };
const GONE = { ready: false, serving: false, terminating: true };

describe('usableEndpoints', () => {
  it.each<[string, EndpointOptions[], { cluster: number[]; local: number[]; hasAny: boolean }]>([
    ['none', [], { cluster: [], local: [], hasAny: false }],
    ['ready ones on two nodes', [READY, LOCAL], { cluster: [0, 1], local: [1], hasAny: true }],
    ['one that is not ready', [UNREADY, READY], { cluster: [1], local: [], hasAny: true }],
    ['none that serves', [UNREADY, GONE], { cluster: [], local: [], hasAny: false }],
    ['terminating ones besides a ready one', [LEAVING, READY], { cluster: [1], local: [], hasAny: true }],
    ['only terminating ones', [LEAVING, GONE], { cluster: [0], local: [], hasAny: true }],
    ['a terminating one on the node', [LOCAL_LEAVING, READY], { cluster: [1], local: [0], hasAny: true }],
    [
      'a terminating one besides a ready one on the node',
      [LOCAL_LEAVING, LOCAL],
      { cluster: [1], local: [1], hasAny: true },
    ],
    ['hints for two zones', [{ zones: ['a'] }, { zones: ['b'] }], { cluster: [0], local: [0, 1], hasAny: true }],
    ['hints for another zone only', [{ zones: ['b'] }], { cluster: [0], local: [0], hasAny: true }],
    ['a ready one without hints', [{ zones: ['a'] }, READY], { cluster: [0, 1], local: [0], hasAny: true }],
    [
      'an unready one without hints',
      [{ zones: ['a'] }, { zones: ['b'] }, UNREADY],
      { cluster: [0], local: [0, 1], hasAny: true },
    ],
  ])('chooses among %s', (_, options, expected) => {
    expect(usable(options)).toEqual(expected);
  });

  it('ignores hints if the node has no zone', () => {
    const options = [{ zones: ['a'] }, { zones: ['b'] }];
    const slice = sliceOf(
      service,
      options.map((each, index) => endpoint(addressOf(index), each)),
    );
    const found = endpointsOf(portOf(80), 'IPv4', [slice], { ...place, zone: undefined });
    expect(usableEndpoints(found, { nodeName: 'n1', zone: undefined }).cluster.size).toBe(2);
  });
});

describe('endpointsOf', () => {
  const targets = (...args: Parameters<typeof endpointsOf>): string[] =>
    endpointsOf(...args).map(({ target }) => target);
  const slice = sliceOf(service, [endpoint('10.0.0.1')]);

  it('conditions that are not set mean ready', () => {
    const bare = { ...slice, endpoints: [{ addresses: ['10.0.0.1'] }] };
    expect(endpointsOf(portOf(80), 'IPv4', [bare], place)[0]).toMatchObject({
      ready: true,
      serving: true,
      terminating: false,
      isLocal: false,
    });
  });

  it('finds the port by name and protocol', () => {
    const ports = [
      { name: 'a', protocol: 'TCP', port: 1 },
      { name: 'b', protocol: 'TCP', port: 2 },
      { name: 'a', protocol: 'UDP', port: 3 },
      { name: 'c', protocol: 'TCP' },
    ];
    const named = [{ ...slice, ports }];
    expect(targets(portOf(80, { name: 'a' }), 'IPv4', named, place)).toEqual(['10.0.0.1 . 1']);
    expect(targets(portOf(80, { name: 'a', protocol: 'UDP' }), 'IPv4', named, place)).toEqual(['10.0.0.1 . 3']);
    expect(targets(portOf(80, { name: 'c' }), 'IPv4', named, place)).toEqual([]);
    expect(targets(portOf(80), 'IPv4', named, place)).toEqual([]);
  });

  it.each([0, -5, 65_536, 70_000, 1.5])('ignores the number %d, which is no port', (port) => {
    expect(targets(portOf(80), 'IPv4', [{ ...slice, ports: [{ name: '', protocol: 'TCP', port }] }], place)).toEqual(
      [],
    );
  });

  it('reads the slices of the family only, and no host names', () => {
    const other = sliceOf(service, [endpoint('fd00::0001')]);
    const names = { ...slice, addressType: 'FQDN', endpoints: [{ addresses: ['a.example'] }] };
    expect(targets(portOf(80), 'IPv4', [slice, other, names], place)).toEqual(['10.0.0.1 . 8080']);
    expect(targets(portOf(80), 'IPv6', [slice, other, names], place)).toEqual(['fd00::1 . 8080']);
  });

  it('counts an endpoint in two slices once, as ready if it is in one of them', () => {
    const unready = sliceOf(service, [endpoint('10.0.0.1', UNREADY)]);
    for (const slices of [
      [slice, unready],
      [unready, slice],
    ]) {
      expect(endpointsOf(portOf(80), 'IPv4', slices, place)).toMatchObject([
        { target: '10.0.0.1 . 8080', ready: true },
      ]);
    }
  });
});
