import { describe, expect, it } from 'vitest';
import { fieldErrorText } from '../../../../machinery/field-error.ts';
import type { LoadBalancerIngress, Service, ServicePort, ServiceSpec } from '../../../generated/types.ts';
import { created, updated } from '../../../testing.ts';
import { serviceKind } from './index.ts';

const errorsOf = (spec: ServiceSpec): string[] =>
  created(serviceKind, { spec: { ports: [{ port: 80 }], ...spec } }).errors;

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
  ['::ffff:127.0.0.1', 'must not be an IPv4-mapped IPv6 address'],
  ['::FFFF:7f00:1', 'must not be an IPv4-mapped IPv6 address'],
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
      [`spec.LoadBalancerSourceRanges: ${onlyBalanced}`, `spec.allocateLoadBalancerNodePorts: ${onlyBalanced}`],
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
  const single =
    "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or 'PreferDualStack' when multiple";
  it.each<[string, ServiceSpec, string[]]>([
    [
      'one address for each family',
      { clusterIP: both[0], clusterIPs: both, ipFamilies: ['IPv4', 'IPv6'], ipFamilyPolicy: 'PreferDualStack' },
      [],
    ],
    [
      'one address for each family and a policy for one',
      { clusterIP: both[0], clusterIPs: both, ipFamilies: ['IPv4', 'IPv6'] },
      [`${single} cluster IPs are specified`, `${single} IP families are specified`],
    ],
    ['the policy for two families', { ipFamilyPolicy: 'PreferDualStack' }, []],
    [
      'two addresses of one family',
      { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1', '10.0.0.2'], ipFamilyPolicy: 'PreferDualStack' },
      ['spec.clusterIPs: Invalid value: ["10.0.0.1","10.0.0.2"]: may specify no more than one IP for each IP family'],
    ],
    [
      'three addresses',
      { clusterIP: '10.0.0.1', clusterIPs: [...both, '10.0.0.2'] },
      ['spec.clusterIPs: Invalid value: ["10.0.0.1","fd00::1","10.0.0.2"]: may only hold up to 2 values'],
    ],
    [
      'None as the second address',
      { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1', 'None'], ipFamilyPolicy: 'PreferDualStack' },
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
  it.each<[string, string[], string[], string | undefined, string[]]>([
    ['add the second address', ['10.0.0.1'], both, 'PreferDualStack', []],
    [
      'add the second address to a single family',
      ['10.0.0.1'],
      both,
      'SingleStack',
      [`${single} cluster IPs are specified`],
    ],
    ['remove the second address', both, ['10.0.0.1'], 'SingleStack', []],
    [
      'remove the second address but not the policy',
      both,
      ['10.0.0.1'],
      undefined,
      [
        'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": must be \'SingleStack\' to release the secondary cluster IP',
      ],
    ],
    ['only change the policy', both, both, 'SingleStack', []],
    [
      'change the second address',
      both,
      ['10.0.0.1', 'fd00::2'],
      undefined,
      ['spec.clusterIPs[1]: Invalid value: ["10.0.0.1","fd00::2"]: may not change once set'],
    ],
    ['keep a Service headless', ['None'], ['None'], undefined, []],
    [
      'make a Service headless',
      ['10.0.0.1'],
      ['None'],
      undefined,
      ['spec.clusterIPs[0]: Invalid value: ["None"]: may not change once set'],
    ],
    [
      'give a headless Service an address',
      ['None'],
      ['10.0.0.1'],
      undefined,
      ['spec.clusterIPs[0]: Invalid value: ["10.0.0.1"]: may not change once set'],
    ],
  ])('the errors of an update that would %s are reported', (_, from, to, ipFamilyPolicy, expected) => {
    const specOf = (clusterIPs: string[]): ServiceSpec => ({
      ports: [{ port: 80 }],
      clusterIP: clusterIPs[0],
      clusterIPs,
      selector: { a: 'b' },
    });
    const old = { ...specOf(from), ipFamilyPolicy: from.length > 1 ? 'RequireDualStack' : 'SingleStack' };
    const spec = { ...specOf(to), ...(ipFamilyPolicy === undefined ? {} : { ipFamilyPolicy }) };
    expect(updated(serviceKind, { spec: old }, { spec }).errors).toEqual(expected);
  });

  it.each<[string, string[], string[], string[]]>([
    ['add the second family', ['IPv4'], ['IPv4', 'IPv6'], []],
    ['omit the families', ['IPv4', 'IPv6'], [], []],
    [
      'change the first family',
      ['IPv4'],
      ['IPv6'],
      ['spec.ipFamilies[0]: Invalid value: ["IPv6"]: may not change once set'],
    ],
    [
      'release a family',
      ['IPv4', 'IPv6'],
      ['IPv4'],
      [
        'spec.ipFamilyPolicy: Invalid value: "PreferDualStack": must be \'SingleStack\' to release the secondary IP family',
      ],
    ],
  ])('the errors of an update that would %s are reported', (_, from, to, expected) => {
    const specOf = (ipFamilies: string[]) => ({ ports: [{ port: 80 }], ipFamilyPolicy: 'PreferDualStack', ipFamilies });
    expect(updated(serviceKind, { spec: specOf(from) }, { spec: specOf(to) }).errors).toEqual(expected);
  });
});

describe('updates of load balancers', () => {
  const balanced = {
    type: 'LoadBalancer',
    ports: [{ port: 80 }],
    externalTrafficPolicy: 'Local',
    healthCheckNodePort: 30_000,
  };
  const errorsAfter = (from: ServiceSpec, to: ServiceSpec): string[] =>
    updated(serviceKind, { spec: from }, { spec: to }).errors;

  it('the class of a load balancer cannot change while the Service is of the type LoadBalancer', () => {
    const [a, b] = [
      { ...balanced, loadBalancerClass: 'x/a' },
      { ...balanced, loadBalancerClass: 'x/b' },
    ];
    expect(errorsAfter(a, a)).toEqual([]);
    expect(errorsAfter(a, b)).toEqual(['spec.loadBalancerClass: Invalid value: "x/b": may not change once set']);
    expect(errorsAfter(a, balanced)).toEqual(['spec.loadBalancerClass: Invalid value: null: may not change once set']);
    expect(errorsAfter({ ports: [{ port: 80 }] }, a)).toEqual([]);
  });

  it('the port for health checks cannot change while the Service needs one', () => {
    const { healthCheckNodePort: _, ...without } = balanced;
    expect(errorsAfter(balanced, without)).toEqual([]);
    expect(errorsAfter(balanced, { ...balanced, healthCheckNodePort: 30_001 })).toEqual([
      'spec.healthCheckNodePort: Forbidden: field is immutable',
    ]);
    expect(errorsAfter({ ...without, externalTrafficPolicy: 'Cluster' }, balanced)).toEqual([]);
  });

  it('the ranges of clients are checked in the field and in the annotation, except those that were there before', () => {
    const text = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';
    const withRanges = { ...balanced, loadBalancerSourceRanges: ['10.0.0.0/8', ' fd00::/64 ', 'x'] };
    const error = `spec.LoadBalancerSourceRanges[2]: Invalid value: "x": ${text}`;
    expect(errorsOf(withRanges)).toEqual([error]);
    expect(errorsAfter(balanced, withRanges)).toEqual([error]);
    expect(errorsAfter(withRanges, withRanges)).toEqual([]);
    const key = 'service.beta.kubernetes.io/load-balancer-source-ranges';
    const annotated = (value: string, spec: ServiceSpec = balanced) =>
      created(serviceKind, { metadata: { annotations: { [key]: value } }, spec }).errors;
    expect(annotated('10.0.0.0/8, fd00::/64')).toEqual([]);
    expect(annotated(' ')).toEqual([]);
    expect(annotated('x,10.0.0.0/8')).toEqual([`metadata.annotations[${key}]: Invalid value: "x": ${text}`]);
    expect(annotated('10.0.0.0/8', { ports: [{ port: 80 }] })).toEqual([
      `metadata.annotations[${key}]: Forbidden: may only be used when \`type\` is 'LoadBalancer'`,
    ]);
  });
});

it('an update may keep external IPs that are no longer valid', () => {
  const spec = { ports: [{ port: 80 }], externalIPs: ['x'] };
  expect(updated(serviceKind, { spec }, { spec }).errors).toEqual([]);
});

it('the two annotations for topology-aware routing must agree', () => {
  const keys = ['service.kubernetes.io/topology-mode', 'service.kubernetes.io/topology-aware-hints'] as const;
  const errorsWith = (mode: string, hints: string) =>
    created(serviceKind, {
      metadata: { annotations: { [keys[0]]: mode, [keys[1]]: hints } },
      spec: { ports: [{ port: 80 }] },
    }).errors;
  expect(errorsWith('Auto', 'Auto')).toEqual([]);
  expect(errorsWith('Auto', 'Off')).toEqual([
    `metadata.annotations[${keys[0]}]: Invalid value: "Auto": must match annotations[${keys[1]}] when both are specified`,
  ]);
});

it.each<[string, ServiceSpec, string[]]>([
  ['a usual Service', { externalIPs: ['192.0.2.1'], loadBalancerSourceRanges: ['10.0.0.0/8'] }, []],
  [
    'a headless Service with an external IP',
    { clusterIP: 'None', externalIPs: ['192.0.2.1'], loadBalancerIP: '192.0.2.1', sessionAffinity: 'ClientIP' },
    [
      'spec.loadBalancerIP is ignored for headless services',
      'spec.externalIPs is ignored for headless services',
      'spec.SessionAffinity is ignored for headless services',
    ],
  ],
  [
    'an external name and an address',
    { type: 'ExternalName', externalName: 'a.b', externalIPs: ['192.0.2.1'] },
    ['spec.externalIPs is ignored when spec.type is "ExternalName"'],
  ],
  [
    'an unused external name',
    { externalName: 'a.b' },
    ['spec.externalName is ignored when spec.type is not "ExternalName"'],
  ],
  [
    'texts that are not canonical',
    { clusterIP: 'FD00::1', externalIPs: ['FD00::2'], loadBalancerSourceRanges: ['10.0.0.1/8'] },
    [
      'spec.clusterIPs[0]: IPv6 address "FD00::1" should be in RFC 5952 canonical format ("fd00::1")',
      'spec.externalIPs[0]: IPv6 address "FD00::2" should be in RFC 5952 canonical format ("fd00::2")',
      'spec.loadBalancerSourceRanges[0]: CIDR value "10.0.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.0.0.1/32"?)',
    ],
  ],
])('the warnings about %s', (_, spec, expected) => {
  expect(serviceKind.warnings?.(created(serviceKind, { spec: { ports: [{ port: 80 }], ...spec } }).object)).toEqual(
    expected,
  );
});

it('a Service with the older annotation for topology-aware routing causes a warning', () => {
  const annotations = { 'service.kubernetes.io/topology-aware-hints': 'Auto' };
  const { object } = created(serviceKind, { metadata: { annotations }, spec: { ports: [{ port: 80 }] } });
  expect(serviceKind.warnings?.(object)).toEqual([
    'annotation service.kubernetes.io/topology-aware-hints is deprecated, please use service.kubernetes.io/topology-mode instead',
  ]);
});

it.each<[string, LoadBalancerIngress, string[]]>([
  ['an address', { ip: '192.0.2.1', ipMode: 'Proxy' }, []],
  ['an address without a mode', { ip: '192.0.2.1' }, ['ipMode: Required value: must be specified when `ip` is set']],
  [
    'an unknown mode',
    { ip: '192.0.2.1', ipMode: 'Odd' },
    ['ipMode: Unsupported value: "Odd": supported values: "Proxy", "VIP"'],
  ],
  ['a mode without an address', { ipMode: 'VIP' }, ['ipMode: Forbidden: may not be specified when `ip` is not set']],
  ['a host name', { hostname: 'a.example' }, []],
  [
    'an address that is not valid',
    { ip: 'x', ipMode: 'VIP' },
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
  const { object } = created(serviceKind, {
    metadata: { resourceVersion: '1' },
    spec: { type: 'LoadBalancer', ports: [{ port: 80 }] },
  });
  const balanced: Service = { ...object, status: { loadBalancer: { ingress: [ingress] } } };
  const errors = serviceKind.subresources['status']?.validate?.(balanced, object).map(fieldErrorText);
  expect(errors?.map((text) => text.replace('status.loadBalancer.ingress[0].', ''))).toEqual(expected);
});
