import { describe, expect, it } from 'vitest';
import type { ServiceSpec } from '../../../generated/types.ts';
import { created, headings, row, updated } from '../../../testing.ts';
import { serviceKind } from './index.ts';

const port = { port: 80 };
const errorsOf = (spec: ServiceSpec): string[] => created(serviceKind, { spec: { ports: [port], ...spec } }).errors;
const specOf = (spec: ServiceSpec): ServiceSpec | undefined => created(serviceKind, { spec }).object.spec;

describe('defaults of Services', () => {
  it.each<[string, ServiceSpec, ServiceSpec]>([
    [
      'ClusterIP',
      { ports: [{ port: 80 }, { name: 'b', port: 81, targetPort: 'web', protocol: 'UDP' }] },
      {
        type: 'ClusterIP',
        sessionAffinity: 'None',
        internalTrafficPolicy: 'Cluster',
        ports: [
          { port: 80, protocol: 'TCP', targetPort: 80 },
          { name: 'b', port: 81, targetPort: 'web', protocol: 'UDP' },
        ],
      },
    ],
    [
      'headless',
      { clusterIP: 'None' },
      {
        clusterIP: 'None',
        clusterIPs: ['None'],
        type: 'ClusterIP',
        sessionAffinity: 'None',
        internalTrafficPolicy: 'Cluster',
      },
    ],
    [
      'ExternalName',
      { type: 'ExternalName', externalName: 'a.b' },
      { type: 'ExternalName', externalName: 'a.b', sessionAffinity: 'None' },
    ],
    [
      'NodePort',
      { type: 'NodePort' },
      { type: 'NodePort', sessionAffinity: 'None', internalTrafficPolicy: 'Cluster', externalTrafficPolicy: 'Cluster' },
    ],
    [
      'LoadBalancer',
      { type: 'LoadBalancer' },
      {
        type: 'LoadBalancer',
        sessionAffinity: 'None',
        internalTrafficPolicy: 'Cluster',
        externalTrafficPolicy: 'Cluster',
        allocateLoadBalancerNodePorts: true,
      },
    ],
    [
      'ClientIP',
      { sessionAffinity: 'ClientIP' },
      {
        sessionAffinity: 'ClientIP',
        sessionAffinityConfig: { clientIP: { timeoutSeconds: 10800 } },
        type: 'ClusterIP',
        internalTrafficPolicy: 'Cluster',
      },
    ],
  ])('the defaults of a Service: %s', (_, spec, expected) => {
    expect(specOf(spec)).toEqual(expected);
  });
  it('a client cannot set the status of a new Service', () => {
    const status = { loadBalancer: { ingress: [{ ip: '1.2.3.4' }] } };
    expect(created(serviceKind, { spec: { ports: [port] }, status }).object.status).toEqual({ loadBalancer: {} });
  });
});

describe('validation of Services', () => {
  it.each<[ServiceSpec, string[]]>([
    [{}, []],
    [{ ports: [] }, ['spec.ports: Required value']],
    [{ ports: [], clusterIP: 'None' }, []],
    [{ type: 'ExternalName', externalName: 'example.com.', ports: [] }, []],
    [{ type: 'ExternalName', ports: [] }, ['spec.externalName: Required value']],
    [
      { type: 'ExternalName', externalName: 'a.b', clusterIP: '10.0.0.1' },
      ['spec.clusterIPs: Forbidden: may not be set for ExternalName services'],
    ],
    [
      { type: 'NodePort', clusterIP: 'None' },
      ['spec.clusterIPs[0]: Invalid value: "None": may not be set to \'None\' for NodePort services'],
    ],
    [
      { type: 'Odd' },
      [
        'spec.type: Unsupported value: "Odd": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"',
      ],
    ],
    [
      { ports: [{ port: 0 }] },
      [
        'spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive',
        'spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive',
      ],
    ],
    [
      { ports: [{ port: 80, protocol: 'ICMP' }] },
      ['spec.ports[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"'],
    ],
    [
      { ports: [{ port: 80, targetPort: 'too--odd' }] },
      ['spec.ports[0].targetPort: Invalid value: "too--odd": must not contain consecutive hyphens'],
    ],
    [
      { ports: [{ port: 80 }, { port: 81 }] },
      ['spec.ports[0].name: Required value', 'spec.ports[1].name: Required value'],
    ],
    [
      {
        ports: [
          { name: 'a', port: 80 },
          { name: 'a', port: 80 },
        ],
      },
      ['spec.ports[1].name: Duplicate value: "a"', 'spec.ports[1]: Duplicate value: {"protocol":"TCP","port":80}'],
    ],
    [
      {
        ports: [
          { name: 'a', port: 80 },
          { name: 'b', port: 80, protocol: 'UDP' },
        ],
      },
      [],
    ],
    [
      { ports: [{ port: 80, nodePort: 30080 }] },
      ["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
    ],
    [{ type: 'NodePort', ports: [{ port: 80, nodePort: 30080 }] }, []],
    [
      { sessionAffinity: 'Odd' },
      ['spec.sessionAffinity: Unsupported value: "Odd": supported values: "ClientIP", "None"'],
    ],
    [
      { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 86401 } } },
      [
        'spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 86401: must be greater than 0 and less than 86400',
      ],
    ],
    [
      { clusterIP: 'x' },
      ['spec.clusterIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'],
    ],
    [
      { clusterIPs: ['10.0.0.1'] },
      ['spec.clusterIPs: Invalid value: ["10.0.0.1"]: must be empty when `clusterIP` is not specified'],
    ],
    [
      { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.2'] },
      ['spec.clusterIPs: Invalid value: ["10.0.0.2"]: first value must match `clusterIP`'],
    ],
    [
      { clusterIP: 'None', clusterIPs: ['None', 'fd00::1'] },
      ['spec.clusterIPs: Invalid value: ["None","fd00::1"]: \'None\' must be the first and only value'],
    ],
    [
      { clusterIP: '10.0.0.1', ipFamilies: ['IPv6'] },
      ['spec.clusterIPs[0]: Invalid value: "10.0.0.1": expected an IPv6 value as indicated by `ipFamilies[0]`'],
    ],
    [
      { ipFamilies: ['IPv4', 'IPv4'], ipFamilyPolicy: 'Odd' },
      [
        'spec.ipFamilies[1]: Duplicate value: "IPv4"',
        'spec.ipFamilyPolicy: Unsupported value: "Odd": supported values: "PreferDualStack", "RequireDualStack", "SingleStack"',
      ],
    ],
    [{ externalIPs: ['192.0.2.1'] }, []],
    [
      { externalTrafficPolicy: 'Local' },
      ['spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services'],
    ],
    [
      { internalTrafficPolicy: 'Odd' },
      ['spec.internalTrafficPolicy: Unsupported value: "Odd": supported values: "Cluster", "Local"'],
    ],
    [
      { loadBalancerClass: 'x/y' },
      ["spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'"],
    ],
  ])('the errors of a new Service with the spec %j are reported', (spec, expected) => {
    expect(errorsOf(spec)).toEqual(expected);
  });
  it('the name of a Service must be a DNS-1035 label', () => {
    expect(created(serviceKind, { metadata: { name: '1a' }, spec: { ports: [port] } }).errors).toEqual([
      expect.stringMatching(/^metadata.name: Invalid value: "1a": a DNS-1035 label must consist of/),
    ]);
  });
  it('the selector of a Service must consist of valid labels', () => {
    expect(errorsOf({ selector: { a: 'b c' } })).toEqual([
      expect.stringMatching(/^spec.selector: Invalid value: "b c": a valid label must be/),
    ]);
  });
});

describe('update of Services', () => {
  const allocated = {
    ports: [port],
    clusterIP: '10.0.0.1',
    clusterIPs: ['10.0.0.1'],
    ipFamilies: ['IPv4'],
    ipFamilyPolicy: 'SingleStack',
  };
  it.each<[string, ServiceSpec, ServiceSpec, string[]]>([
    ['the same spec', allocated, allocated, []],
    ['clusterIPs omitted', allocated, { ports: [port], clusterIP: '10.0.0.1' }, []],
    [
      'a different address',
      allocated,
      { ...allocated, clusterIP: '10.0.0.2' },
      ['spec.clusterIPs[0]: Invalid value: ["10.0.0.2"]: may not change once set'],
    ],
    ['without an address', allocated, { ports: [port] }, []],
    ['to ExternalName', allocated, { ...allocated, type: 'ExternalName', externalName: 'a.b' }, []],
    ['from ExternalName', { type: 'ExternalName', externalName: 'a.b' }, { ports: [port], externalName: 'a.b' }, []],
    [
      'from NodePort',
      { ...allocated, type: 'NodePort', ports: [{ port: 80, nodePort: 30080 }] },
      { ...allocated, ports: [{ port: 80, nodePort: 30080 }], externalTrafficPolicy: 'Cluster' },
      [],
    ],
  ])('an update of a Service: %s', (_, from, to, expected) => {
    expect(updated(serviceKind, { spec: from }, { spec: to }).errors).toEqual(expected);
  });
  it('an update of a Service drops the fields that its new type does not have', () => {
    const { spec } = updated(
      serviceKind,
      { spec: allocated },
      { spec: { ...allocated, type: 'ExternalName', externalName: 'a.b' } },
    ).object;
    expect(spec).toEqual({
      type: 'ExternalName',
      externalName: 'a.b',
      sessionAffinity: 'None',
      ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }],
    });
  });
  it('an update of a Service keeps the status', () => {
    const status = { loadBalancer: { ingress: [{ ip: '1.2.3.4' }] } };
    expect(updated(serviceKind, { spec: allocated }, { spec: allocated, status }).object.status).toEqual({
      loadBalancer: {},
    });
  });
});

it('the status subresource of a Service changes only status and metadata', () => {
  const old = created(serviceKind, {
    metadata: { resourceVersion: '1', labels: { a: '1' } },
    spec: { type: 'LoadBalancer', ports: [port] },
  }).object;
  const body = {
    ...old,
    metadata: { ...old.metadata, labels: { b: '2' } },
    spec: {},
    status: { loadBalancer: { ingress: [{ ip: 'x' }] } },
  };
  const { apply, validate } = serviceKind.subresources['status'] ?? {};
  const result = apply?.(old, body, { now: 0 });
  if (result === undefined) throw new Error('no status subresource');
  expect(result.spec).toEqual(old.spec);
  expect(result.metadata.labels).toEqual({ b: '2' });
  expect(result.status).toEqual({ loadBalancer: { ingress: [{ ip: 'x', ipMode: 'VIP' }] } });
  expect(validate?.(result, old).map((error) => error.field)).toEqual(['status.loadBalancer.ingress[0].ip']);
});

describe('table of Services', () => {
  it('the table of Services has the headings of v1.33', () => {
    expect(headings(serviceKind)).toEqual({
      narrow: 'NAME | TYPE | CLUSTER-IP | EXTERNAL-IP | PORT(S) | AGE',
      all: 'NAME | TYPE | CLUSTER-IP | EXTERNAL-IP | PORT(S) | AGE | SELECTOR',
    });
  });
  it.each<[string, ServiceSpec, string]>([
    [
      'ClusterIP',
      {
        clusterIP: '10.0.0.1',
        clusterIPs: ['10.0.0.1'],
        ports: [port, { name: 'b', port: 53, protocol: 'UDP' }],
        selector: { b: '2', a: '1' },
      },
      'a ClusterIP 10.0.0.1 <none> 80/TCP,53/UDP 5m a=1,b=2',
    ],
    ['headless', { clusterIP: 'None' }, 'a ClusterIP None <none> <none> 5m <none>'],
    [
      'NodePort',
      { type: 'NodePort', ports: [{ port: 80, nodePort: 30080 }], externalIPs: ['192.0.2.1'] },
      'a NodePort <none> 192.0.2.1 80:30080/TCP 5m <none>',
    ],
    ['ExternalName', { type: 'ExternalName', externalName: 'a.b' }, 'a ExternalName <none> a.b <none> 5m <none>'],
    ['LoadBalancer', { type: 'LoadBalancer' }, 'a LoadBalancer <none> <pending> <none> 5m <none>'],
  ])('the table row of a Service: %s', (_, spec, expected) => {
    expect(row(serviceKind, { metadata: { creationTimestamp: '2026-01-31T11:55:00Z' }, spec }).join(' ')).toBe(
      expected,
    );
  });
});
