import { describe, expect, it } from 'vitest';
import { fieldErrorText } from '../../../../machinery/field-error.ts';
import type { LoadBalancerIngress, Service, ServicePort, ServiceSpec } from '../../../generated/types.ts';
import { created, updated } from '../../../testing.ts';
import { serviceKind } from './index.ts';

const errorsOf = (spec: ServiceSpec): string[] =>
  created(serviceKind, { spec: { ports: [{ port: 80 }], ...spec } }).errors;

/** The errors of a Service that has not got its defaults. */
const errorsWithoutDefaults = (spec: ServiceSpec): string[] => {
  const metadata = { name: 'a', namespace: 'n' };
  return serviceKind.validateCreate({ apiVersion: 'v1', kind: 'Service', metadata, spec }).map(fieldErrorText);
};

describe('type and session affinity of Services', () => {
  it('a Service without type and session affinity is rejected', () => {
    expect(errorsWithoutDefaults({ ports: [{ port: 80, protocol: 'TCP' }] })).toEqual([
      'spec.sessionAffinity: Required value',
      'spec.type: Required value',
    ]);
    expect(created(serviceKind, {}).errors).toEqual(['spec.ports: Required value']);
  });
  it('only a Service of type LoadBalancer may not expose the port of the kubelet', () => {
    expect(errorsOf({ ports: [{ port: 10_250 }] })).toEqual([]);
    expect(errorsOf({ type: 'LoadBalancer', ports: [{ port: 10_249 }] })).toEqual([]);
    expect(errorsOf({ type: 'LoadBalancer', ports: [{ port: 10_250 }] })).toEqual([
      'spec.ports[0]: Invalid value: 10250: may not expose port 10250 externally since it is used by kubelet',
    ]);
  });
  it('a Service of type LoadBalancer may not be headless', () => {
    expect(errorsOf({ type: 'LoadBalancer', clusterIP: 'None' })).toEqual([
      'spec.clusterIPs[0]: Invalid value: "None": may not be set to \'None\' for LoadBalancer services',
    ]);
  });
  it('a Service of type ExternalName has a valid external name and no IP families', () => {
    const spec = { type: 'ExternalName', ipFamilies: ['IPv4'], ipFamilyPolicy: 'SingleStack' };
    expect(errorsOf({ ...spec, externalName: 'a_b.' })).toEqual([
      'spec.ipFamilies: Forbidden: may not be set for ExternalName services',
      'spec.ipFamilyPolicy: Forbidden: may not be set for ExternalName services',
      expect.stringMatching(/^spec.externalName: Invalid value: "a_b": a lowercase RFC 1123 subdomain must/),
    ]);
  });
  it.each([
    [0, false],
    [1, true],
    [86_400, true],
    [86_401, false],
  ])('a session affinity with a timeout of %i s is valid: %s', (timeoutSeconds, valid) => {
    const text = 'must be greater than 0 and less than 86400';
    expect(errorsOf({ sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds } } })).toEqual(
      valid ? [] : [`spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: ${timeoutSeconds}: ${text}`],
    );
  });
});

const LOOPBACK = 'may not be in the loopback range (127.0.0.0/8, ::1/128)';
const LINK_LOCAL = 'may not be in the link-local range (169.254.0.0/16, fe80::/10)';
const MULTICAST = 'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)';

it.each([
  ['192.0.2.1', undefined],
  ['fd00::1', undefined],
  ['x', 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'],
  ['0.0.0.0', 'may not be unspecified (0.0.0.0 or ::)'],
  ['::', 'may not be unspecified (0.0.0.0 or ::)'],
  ['127.0.0.1', LOOPBACK],
  ['::1', LOOPBACK],
  ['0:0:0:0:0:0:0:1', LOOPBACK],
  ['0::1', LOOPBACK],
  ['::ffff:127.0.0.1', LOOPBACK],
  ['::FFFF:7f00:1', LOOPBACK],
  ['169.254.0.1', LINK_LOCAL],
  ['FE80::1', LINK_LOCAL],
  ['febf::1', LINK_LOCAL],
  ['224.0.0.1', MULTICAST],
  ['ff02::1', MULTICAST],
  ['ff12::1', MULTICAST],
  ['fec0::1', undefined],
  ['ff05::1', undefined],
  ['224.0.1.1', undefined],
  ['0::0', 'may not be unspecified (0.0.0.0 or ::)'],
])('the external IP %s of a Service is checked', (ip, text) => {
  expect(errorsOf({ externalIPs: [ip] })).toEqual(
    text === undefined ? [] : [`spec.externalIPs[0]: Invalid value: "${ip}": ${text}`],
  );
});

describe('traffic of Services', () => {
  const onlyBalanced = "Forbidden: may only be used when `type` is 'LoadBalancer'";
  const noHealthPort =
    "spec.healthCheckNodePort: Invalid value: 30000: may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
  it.each<[string, ServiceSpec, string[]]>([
    ['has a local external policy and type NodePort', { type: 'NodePort', externalTrafficPolicy: 'Local' }, []],
    [
      'has a local external policy and an external IP',
      { externalIPs: ['192.0.2.1'], externalTrafficPolicy: 'Local' },
      [],
    ],
    [
      'has an unknown external policy',
      { type: 'NodePort', externalTrafficPolicy: 'Odd' },
      ['spec.externalTrafficPolicy: Unsupported value: "Odd": supported values: "Cluster", "Local"'],
    ],
    [
      'has a health port, type LoadBalancer and a local external policy',
      { type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: 30_000 },
      [],
    ],
    [
      'has a health port, type LoadBalancer and a cluster-wide external policy',
      { type: 'LoadBalancer', externalTrafficPolicy: 'Cluster', healthCheckNodePort: 30_000 },
      [noHealthPort],
    ],
    [
      'has a health port, type NodePort and a local external policy',
      { type: 'NodePort', externalTrafficPolicy: 'Local', healthCheckNodePort: 30_000 },
      [noHealthPort],
    ],
    ['prefers close endpoints', { trafficDistribution: 'PreferClose', internalTrafficPolicy: 'Local' }, []],
    [
      'has an unknown distribution',
      { trafficDistribution: 'Odd' },
      ['spec.trafficDistribution: Unsupported value: "Odd": supported values: "PreferClose"'],
    ],
    [
      'has the settings of a load balancer and type LoadBalancer',
      {
        type: 'LoadBalancer',
        allocateLoadBalancerNodePorts: false,
        loadBalancerClass: 'x/y',
        loadBalancerSourceRanges: ['10.0.0.0/8'],
      },
      [],
    ],
    [
      'has the settings of a load balancer and type NodePort',
      { type: 'NodePort', allocateLoadBalancerNodePorts: false, loadBalancerSourceRanges: ['10.0.0.0/8'] },
      [`spec.allocateLoadBalancerNodePorts: ${onlyBalanced}`, `spec.LoadBalancerSourceRanges: ${onlyBalanced}`],
    ],
  ])('the traffic settings are checked of a Service that %s', (_, spec, expected) => {
    expect(errorsOf(spec)).toEqual(expected);
  });
});

describe('ports of Services', () => {
  it.each<[string, ServicePort[], string[]]>([
    ['one named port', [{ name: 'a', port: 65_535, appProtocol: 'x.y/http' }], []],
    [
      'a name that is not a label',
      [{ name: 'A', port: 80 }],
      [expect.stringMatching(/^spec.ports\[0\].name: Invalid value: "A": a lowercase RFC 1123 label must/)],
    ],
    [
      'an application protocol that is not valid',
      [{ port: 80, appProtocol: '' }],
      [
        'spec.ports[0].appProtocol: Invalid value: "": name part must be non-empty',
        expect.stringMatching(/^spec.ports\[0\].appProtocol: Invalid value: "": name part must consist of/),
      ],
    ],
    [
      'the same node port for one protocol',
      [
        { name: 'a', port: 80, nodePort: 30_080 },
        { name: 'b', port: 81, nodePort: 30_080 },
      ],
      ['spec.ports[1].nodePort: Duplicate value: 30080'],
    ],
    [
      'the same node port for two protocols',
      [
        { name: 'a', port: 80, nodePort: 30_080 },
        { name: 'b', port: 81, nodePort: 30_080, protocol: 'UDP' },
      ],
      [],
    ],
  ])('the errors of a Service of type NodePort with %s are reported', (_, ports, expected) => {
    expect(errorsOf({ type: 'NodePort', ports })).toEqual(expected);
  });
  it('a port without a protocol is rejected, and a target port may be absent', () => {
    const spec = { type: 'ClusterIP', sessionAffinity: 'None' };
    expect(errorsWithoutDefaults({ ...spec, ports: [{ port: 80 }] })).toEqual([
      'spec.ports[0].protocol: Required value',
    ]);
  });
});

describe('cluster IPs of Services', () => {
  const both = ['10.0.0.1', 'fd00::1'];
  it.each<[string, ServiceSpec, string[]]>([
    ['one address for each family', { clusterIP: both[0], clusterIPs: both, ipFamilies: ['IPv4', 'IPv6'] }, []],
    ['the policy for two families', { ipFamilyPolicy: 'PreferDualStack' }, []],
    [
      'two addresses of one family',
      { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1', '10.0.0.2'] },
      ['spec.clusterIPs: Invalid value: ["10.0.0.1","10.0.0.2"]: may specify no more than one IP for each IP family'],
    ],
    [
      'three addresses',
      { clusterIP: '10.0.0.1', clusterIPs: [...both, '10.0.0.2'] },
      ['spec.clusterIPs: Invalid value: ["10.0.0.1","fd00::1","10.0.0.2"]: may only hold up to 2 values'],
    ],
    [
      'None as the second address',
      { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1', 'None'] },
      ['spec.clusterIPs[1]: Invalid value: "None": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'],
    ],
    [
      'an unknown family',
      { clusterIP: '10.0.0.1', ipFamilies: ['Odd'] },
      ['spec.ipFamilies[0]: Unsupported value: "Odd": supported values: "IPv4", "IPv6"'],
    ],
    ['no address and a family', { clusterIP: 'None', ipFamilies: ['IPv6'] }, []],
  ])('the errors of a Service with %s are reported', (_, spec, expected) => {
    expect(errorsOf(spec)).toEqual(expected);
  });
  it('a Service that sets clusterIP must set clusterIPs too', () => {
    const spec = { type: 'ClusterIP', sessionAffinity: 'None', ports: [{ port: 80, protocol: 'TCP' }] };
    expect(errorsWithoutDefaults({ ...spec, clusterIP: '10.0.0.1' })).toEqual(['spec.clusterIPs: Required value']);
  });
  it.each<[string, string[], string[], string[]]>([
    ['add the second address', ['10.0.0.1'], both, []],
    ['remove the second address', both, ['10.0.0.1'], []],
    [
      'change the second address',
      both,
      ['10.0.0.1', 'fd00::2'],
      ['spec.clusterIPs[1]: Invalid value: ["10.0.0.1","fd00::2"]: may not change once set'],
    ],
    ['keep a Service headless', ['None'], ['None'], []],
    [
      'make a Service headless',
      ['10.0.0.1'],
      ['None'],
      ['spec.clusterIPs[0]: Invalid value: ["None"]: may not change once set'],
    ],
    [
      'give a headless Service an address',
      ['None'],
      ['10.0.0.1'],
      ['spec.clusterIPs[0]: Invalid value: ["10.0.0.1"]: may not change once set'],
    ],
  ])('the errors of an update that would %s are reported', (_, from, to, expected) => {
    const specOf = (clusterIPs: string[]): ServiceSpec => ({
      ports: [{ port: 80 }],
      clusterIP: clusterIPs[0],
      clusterIPs,
    });
    expect(updated(serviceKind, { spec: specOf(from) }, { spec: specOf(to) }).errors).toEqual(expected);
  });
});

it.each<[string, LoadBalancerIngress, string[]]>([
  ['an address', { ip: '192.0.2.1' }, []],
  ['a host name', { hostname: 'a.example' }, []],
  [
    'an address that is not valid',
    { ip: 'x' },
    ['ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'],
  ],
  [
    'an address as the host name',
    { hostname: '192.0.2.1' },
    ['hostname: Invalid value: "192.0.2.1": must be a DNS name, not an IP address'],
  ],
  [
    'a host name that is not valid',
    { hostname: 'a_b' },
    [expect.stringMatching(/hostname: Invalid value: "a_b": a lowercase RFC 1123 subdomain must/)],
  ],
])('the errors of a load balancer status with %s are reported', (_, ingress, expected) => {
  const { object } = created(serviceKind, { metadata: { resourceVersion: '1' }, spec: { ports: [{ port: 80 }] } });
  const balanced: Service = { ...object, status: { loadBalancer: { ingress: [ingress] } } };
  const errors = serviceKind.subresources['status']?.validate?.(balanced, object).map(fieldErrorText);
  expect(errors?.map((text) => text.replace('status.loadBalancer.ingress[0].', ''))).toEqual(expected);
});
