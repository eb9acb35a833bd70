import { expect, test } from 'vitest';
import type { Node, Service, ServiceSpec } from '../../api/generated/types.ts';
import { assignLoadBalancers, isBalanced } from './assign.ts';

const node = (name: string, ...addresses: string[]): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name },
  status: {
    addresses: [{ type: 'Hostname', address: name }, ...addresses.map((address) => ({ type: 'InternalIP', address }))],
  },
});

interface Given {
  spec?: ServiceSpec;
  /** The day of January on which the Service was created. */
  day?: number;
  has?: boolean;
}

const service = (name: string, ports: (number | string)[], { spec, day = 1, has = false }: Given = {}): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace: 'a', creationTimestamp: `2026-01-0${day}T00:00:00Z` },
  spec: {
    type: 'LoadBalancer',
    ipFamilies: ['IPv4'],
    ports: ports.map((port) => ({
      port: Number.parseInt(`${port}`, 10),
      protocol: `${port}`.endsWith('u') ? 'UDP' : 'TCP',
    })),
    ...spec,
  },
  status: { loadBalancer: has ? { ingress: [{ ip: '192.0.2.1', ipMode: 'VIP' }] } : {} },
});

const NODES = [node('n', '192.0.2.1', 'fd00::1')];
const decided = (services: Service[], nodes = NODES) =>
  Object.fromEntries(
    assignLoadBalancers(services, nodes, () => undefined).map((each) => [
      each.service.metadata.name,
      each.waitsFor ?? each.ingress.map(({ ip }) => ip).join(),
    ]),
  );

test.each<[string, Service[], Record<string, string>]>([
  [
    'the first of two on one port',
    [service('b', [80], { day: 2 }), service('c', [80])],
    {
      c: '192.0.2.1',
      b: 'port TCP/80 is in use by the Service a/c',
    },
  ],
  [
    'the one that has it already',
    [service('b', [80], { day: 2, has: true }), service('c', [80])],
    {
      b: '192.0.2.1',
      c: 'port TCP/80 is in use by the Service a/b',
    },
  ],
  [
    'both, if one is TCP and the other is UDP',
    [service('b', [53]), service('c', ['53u'])],
    { b: '192.0.2.1', c: '192.0.2.1' },
  ],
  [
    'those whose ports only a waiting one wants',
    [service('b', [80]), service('c', [80, 81]), service('d', [81])],
    {
      b: '192.0.2.1',
      c: 'port TCP/80 is in use by the Service a/b',
      d: '192.0.2.1',
    },
  ],
  [
    'the addresses of both families',
    [service('b', [80], { spec: { ipFamilies: ['IPv6', 'IPv4'] } })],
    { b: 'fd00::1,192.0.2.1' },
  ],
])('the address goes to %s', (_, services, expected) => {
  expect(decided(services)).toEqual(expected);
});

test('a Service waits for a node with an address of its family, and holds no port meanwhile', () => {
  const services = [service('b', [80], { spec: { ipFamilies: ['IPv6'] } }), service('c', [80], { day: 2 })];
  expect(decided(services, [node('n', '192.0.2.1')])).toEqual({
    b: 'no node has an address of the IP families of the Service',
    c: '192.0.2.1',
  });
});

test.each<[string, Service, boolean]>([
  ['that has the type LoadBalancer', service('b', [80]), true],
  ['that has the type NodePort', service('b', [80], { spec: { type: 'NodePort' } }), false],
  ['with a class', service('b', [80], { spec: { loadBalancerClass: 'x/y' } }), false],
  [
    'that is being deleted',
    { ...service('b', [80]), metadata: { name: 'b', deletionTimestamp: '2026-01-01T00:00:00Z' } },
    false,
  ],
])('a Service %s needs a load balancer: %j', (_, given, expected) => {
  expect(isBalanced(given)).toBe(expected);
});
