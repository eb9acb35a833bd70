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
      ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }],
    });
  });
  it('a Service that becomes of type LoadBalancer keeps the fields of load balancers that it sets', () => {
    expect(specAfter({ type: 'NodePort' }, BALANCED)).toMatchObject(BALANCED);
  });
  it('a Service that no longer has node ports loses them, unless the client asks for another one', () => {
    const nodePorts = (spec: ServiceSpec | undefined) => spec?.ports?.map(({ nodePort }) => nodePort);
    const more = { type: 'ClusterIP', ports: [...ports, { name: 'b', port: 81, nodePort: 30_081 }] };
    for (const type of ['NodePort', 'LoadBalancer']) {
      expect(nodePorts(specAfter({ type }, { type: 'ClusterIP' }))).toEqual([undefined]);
      expect(nodePorts(specAfter({ type }, more))).toEqual([30_080, 30_081]);
    }
  });
  it('a Service that is no longer of type LoadBalancer loses the status of the load balancer', () => {
    const status = { loadBalancer: { ingress: [{ ip: '192.0.2.1', ipMode: 'VIP' }] } };
    const old = { ...created(serviceKind, { spec: { ports, ...BALANCED } }).object, status };
    const statusAfter = (type: string) => {
      const service = { ...old, spec: { ...old.spec, type }, status };
      serviceKind.prepareForUpdate?.(service, old, { now: NOW });
      return service.status;
    };
    expect(statusAfter('LoadBalancer')).toEqual(status);
    expect(statusAfter('NodePort')).toEqual({ loadBalancer: {} });
    expect(old.status).toEqual({ loadBalancer: { ingress: [{ ip: '192.0.2.1', ipMode: 'VIP' }] } });
  });
});

describe('node ports of an updated Service', () => {
  const nodePort = (ports: ServiceSpec['ports']): ServiceSpec => ({ type: 'NodePort', ports });
  it.each<[string, ServiceSpec['ports'], ServiceSpec['ports'], (number | undefined)[]]>([
    ['kept by the name of the port', [{ name: 'a', port: 80, nodePort: 30_080 }], [{ name: 'a', port: 81 }], [30_080]],
    ['kept without a name', [{ port: 80, nodePort: 30_080 }], [{ port: 81 }], [30_080]],
    ['new for another name', [{ name: 'a', port: 80, nodePort: 30_080 }], [{ name: 'b', port: 80 }], [undefined]],
    ['those of the update', [{ port: 80, nodePort: 30_080 }], [{ port: 80, nodePort: 30_081 }], [30_081]],
    [
      'not taken from another port',
      [{ name: 'a', port: 80, nodePort: 30_080 }],
      [
        { name: 'a', port: 80 },
        { name: 'b', port: 81, nodePort: 30_080 },
      ],
      [undefined, 30_080],
    ],
  ])('the node ports of an updated Service are %s', (_, from, to, expected) => {
    const { object } = updated(serviceKind, { spec: nodePort(from) }, { spec: nodePort(to) });
    expect(object.spec?.ports?.map((port) => port.nodePort)).toEqual(expected);
  });
});

describe('an update of the policy to SingleStack', () => {
  const both = {
    clusterIP: '10.0.0.1',
    clusterIPs: ['10.0.0.1', 'fd00::1'],
    ipFamilies: ['IPv4', 'IPv6'],
    ipFamilyPolicy: 'PreferDualStack',
  };
  it('an update of the policy to SingleStack releases the second address and the second family', () => {
    expect(specAfter(both, { ...both, ipFamilyPolicy: 'SingleStack' })).toMatchObject({
      clusterIPs: ['10.0.0.1'],
      ipFamilies: ['IPv4'],
    });
    expect(specAfter(both, both)).toMatchObject(both);
  });
});

describe('clusterIPs of an updated Service', () => {
  const both = { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1', 'fd00::1'] };
  it.each<[string, ServiceSpec, ServiceSpec, string[] | undefined]>([
    ['are kept if they are omitted', both, { clusterIP: '10.0.0.1' }, both.clusterIPs],
    ['are replaced if only clusterIP changes', both, { ...both, clusterIP: '10.0.0.2' }, ['10.0.0.2']],
    ['are kept if only clusterIP is cleared', both, { clusterIPs: both.clusterIPs }, both.clusterIPs],
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
