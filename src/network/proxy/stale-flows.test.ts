import { describe, expect, it } from 'vitest';
import type { UdpFrontend } from './service-rules.ts';
import { changedFrontends, frontendId, parseFlow, staleness } from './stale-flows.ts';

const frontend = (address: string | undefined, port: number, ...targets: string[]): UdpFrontend => ({
  address,
  port,
  family: address?.includes(':') === true ? 'IPv6' : 'IPv4',
  targets: new Set(targets),
});
const A = '10.244.0.1 . 53';
const B = '10.244.0.2 . 53';

describe('changedFrontends', () => {
  const dns = (...targets: string[]) => [frontend('10.96.0.1', 53, ...targets)];
  it.each<[string, UdpFrontend[], UdpFrontend[], UdpFrontend[]]>([
    ['the same endpoints', dns(A), dns(A), []],
    ['a new endpoint', dns(A), dns(A, B), []],
    ['the first endpoint', dns(), dns(A), dns(A)],
    ['the first endpoint of a new Service', [], dns(A), dns(A)],
    ['a new Service without endpoints', [], dns(), []],
    ['a removed endpoint', dns(A, B), dns(B), dns(B)],
    ['the last endpoint', dns(A), dns(), dns()],
    ['a removed Service', dns(A), [], dns()],
  ])('contains what may have stale entries: %s', (_, before, after, expected) => {
    expect(changedFrontends(before, after)).toEqual(expected);
  });
});

const OUTPUT = `
udp      17 29 src=10.244.0.9 dst=10.96.0.1 sport=4000 dport=53 src=10.244.0.1 dst=10.244.0.9 sport=53 dport=4000 [ASSURED] mark=0 use=1
udp      17 20 src=10.244.0.9 dst=10.96.0.9 sport=4001 dport=53 [UNREPLIED] src=10.96.0.9 dst=10.244.0.9 sport=53 dport=4001 mark=0 use=1
udp      17 29 src=fd00::0009 dst=fd00:96::1 sport=4002 dport=53 src=fd00::1 dst=fd00::9 sport=53 dport=4002 mark=0 use=1
conntrack v1.4.7 (conntrack-tools): 3 flow entries have been shown.
`;

it('parseFlow reads both directions of an entry', () => {
  expect(OUTPUT.split('\n').flatMap((line) => parseFlow(line) ?? [])).toEqual([
    { destination: '10.96.0.1', destinationPort: 53, target: A },
    { destination: '10.96.0.9', destinationPort: 53, target: '10.96.0.9 . 53' },
    { destination: 'fd00:96::1', destinationPort: 53, target: 'fd00::1 . 53' },
  ]);
});

describe('stale entries', () => {
  const flow = (destination: string, destinationPort: number, target: string) => ({
    destination,
    destinationPort,
    target,
  });
  it.each<[string, ReturnType<typeof flow>, UdpFrontend, boolean]>([
    ['one that leads to an endpoint', flow('10.96.0.1', 53, A), frontend('10.96.0.1', 53, A), false],
    ['one that leads to another endpoint', flow('10.96.0.1', 53, B), frontend('10.96.0.1', 53, A), true],
    ['one that leads to none', flow('10.96.0.1', 53, '10.96.0.1 . 53'), frontend('10.96.0.1', 53, A), true],
    ['one to another port', flow('10.96.0.1', 54, B), frontend('10.96.0.1', 53, A), false],
    ['one to a node port', flow('192.0.2.1', 30_053, B), frontend(undefined, 30_053, A), true],
    ['one to the same port of another machine', flow('192.0.2.2', 30_053, B), frontend(undefined, 30_053, A), false],
    [
      'one to a program of the node whose port is no node port any more',
      flow('192.0.2.1', 30_053, '192.0.2.1 . 30053'),
      frontend(undefined, 30_053),
      false,
    ],
  ])('are known: %s', (_, candidate, changed, isStale) => {
    expect(staleness(new Map([[frontendId(changed), changed]]), 'IPv4', new Set(['192.0.2.1']))(candidate)).toBe(
      isStale,
    );
  });
});
