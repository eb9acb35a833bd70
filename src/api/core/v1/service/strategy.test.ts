import { describe, expect, it } from 'vitest';
import type { LoadBalancerIngress, Service, ServiceSpec } from '../../../generated/types.ts';
import { created, NOW, updated } from '../../../testing.ts';
import { serviceKind } from './index.ts';

const ports = [{ port: 80, nodePort: 30_080 }];
const specAfter = (from: ServiceSpec, to: ServiceSpec): ServiceSpec | undefined =>
  updated(serviceKind, { spec: { ports, ...from } }, { spec: { ports, ...to } }).object.spec;
const BALANCED = {
  type: 'LoadBalancer',
  allocateLoadBalancerNodePorts: false,
  loadBalancerClass: 'x/y',
  externalTrafficPolicy: 'Local',
  healthCheckNodePort: 30_000,
};

describe('an update of the type of a Service', () => {
  it('a Service that keeps its type keeps the fields of that type', () => {
    const nodePort = { type: 'NodePort', externalTrafficPolicy: 'Local' };
    expect(specAfter(nodePort, nodePort)).toMatchObject({ ...nodePort, ports });
    expect(specAfter(BALANCED, BALANCED)).toMatchObject(BALANCED);
    const named = { type: 'ExternalName', externalName: 'a.b', internalTrafficPolicy: 'Local' };
    expect(specAfter(named, named)).toMatchObject(named);
  });
  it('a Service that was of type LoadBalancer loses the fields of load balancers', () => {
    const spec = specAfter(BALANCED, { ...BALANCED, type: 'ClusterIP' });
    expect(spec).toEqual({
      type: 'ClusterIP',
      sessionAffinity: 'None',
      internalTrafficPolicy: 'Cluster',
      ports: [{ port: 80, nodePort: 30_080, protocol: 'TCP', targetPort: 80 }],
    });
  });
  it('a Service that becomes of type LoadBalancer keeps the fields of load balancers that it sets', () => {
    expect(specAfter({ type: 'NodePort' }, BALANCED)).toMatchObject(BALANCED);
  });
  it('a Service loses only node ports that it had before', () => {
    const to = { type: 'ClusterIP', ports: [...ports, { name: 'b', port: 81, nodePort: 30_081 }] };
    expect(specAfter({ type: 'NodePort' }, to)?.ports?.map(({ nodePort }) => nodePort)).toEqual([undefined, 30_081]);
    expect(specAfter({ type: 'LoadBalancer' }, to)?.ports?.map(({ nodePort }) => nodePort)).toEqual([
      undefined,
      30_081,
    ]);
  });
});

describe('clusterIPs of an updated Service', () => {
  const both = { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1', 'fd00::1'] };
  it.each<[string, ServiceSpec, ServiceSpec, string[] | undefined]>([
    ['are kept if they are omitted', both, { clusterIP: '10.0.0.1' }, both.clusterIPs],
    ['are replaced if only clusterIP changes', both, { ...both, clusterIP: '10.0.0.2' }, ['10.0.0.2']],
    ['are removed if only clusterIP is cleared', both, { clusterIPs: both.clusterIPs }, undefined],
    [
      'are taken from the update if both change',
      both,
      { clusterIP: '10.0.0.2', clusterIPs: ['10.0.0.2', 'fd00::2'] },
      ['10.0.0.2', 'fd00::2'],
    ],
    ['may lose the second address', both, { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1'] }, ['10.0.0.1']],
  ])('the addresses of an updated Service %s', (_, from, to, expected) => {
    expect(specAfter(from, to)?.clusterIPs).toEqual(expected);
  });
  it('a Service that has no address yet can be updated', () => {
    const spec = { ports: [{ port: 80 }] };
    expect(updated(serviceKind, { spec }, { spec }).errors).toEqual([]);
  });
  it('a Service of type ExternalName gets one error for its address', () => {
    const spec = { type: 'ExternalName', externalName: 'a.b', clusterIP: 'x' };
    expect(created(serviceKind, { spec }).errors).toEqual([
      'spec.clusterIPs: Forbidden: may not be set for ExternalName services',
    ]);
  });
});

it('a Service without session affinity has no settings for it', () => {
  const sessionAffinityConfig = { clientIP: { timeoutSeconds: 5 } };
  const specOf = (spec: ServiceSpec) => created(serviceKind, { spec }).object.spec;
  expect(specOf({ sessionAffinityConfig })).not.toHaveProperty('sessionAffinityConfig');
  expect(specOf({ sessionAffinity: 'ClientIP', sessionAffinityConfig })).toMatchObject({ sessionAffinityConfig });
});

it.each([
  ['0', 0],
  ['empty', ''],
])('a target port that is %s is replaced by the port of the Service', (_, targetPort) => {
  const { object } = created(serviceKind, { spec: { ports: [{ port: 80, targetPort }] } });
  expect(object.spec?.ports?.[0]?.targetPort).toBe(80);
});

it.each<[string, LoadBalancerIngress[], string[], string]>([
  ['addresses and host names', [{ ip: '192.0.2.2' }, { hostname: 'a.b' }], [], '192.0.2.2,a.b'],
  ['an address before the host name', [{ ip: '192.0.2.2', hostname: 'a.b' }], [], '192.0.2.2'],
  ['each address once and sorted', [{ ip: '2.2.2.2' }, { ip: '1.1.1.1' }, { ip: '2.2.2.2' }], [], '1.1.1.1,2.2.2.2'],
  ['the external IPs last', [{ ip: '2.2.2.2' }, {}], ['1.1.1.1'], '2.2.2.2,1.1.1.1'],
])('the table shows of a load balancer %s', (_, ingress, externalIPs, expected) => {
  const service: Service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'a' },
    spec: { type: 'LoadBalancer', externalIPs },
    status: { loadBalancer: { ingress } },
  };
  expect(serviceKind.row(service, { now: NOW })[3]).toBe(expected);
});
