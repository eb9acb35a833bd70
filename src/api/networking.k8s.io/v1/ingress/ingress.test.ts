import { describe, expect, it, test } from 'vitest';
import { fieldErrorText } from '../../../../machinery/field-error.ts';
import type { Ingress } from '../../../generated/types.ts';
import { created, headings, row, updated } from '../../../testing.ts';
import { ingressKind } from './index.ts';

const service = { name: 'web', port: { number: 80 } };
const backend = { service };
const path = { path: '/', pathType: 'Prefix', backend };
const withPath = (changes: object) => ({ rules: [{ http: { paths: [{ ...path, ...changes }] } }] });
const withHost = (host: string) => ({ rules: [{ host, http: { paths: [path] } }] });
const errorsOf = (spec: object): string[] => created(ingressKind, { spec }).errors;
const CLASS = 'kubernetes.io/ingress.class';
const AT = 'spec.rules[0].http.paths[0]';

it('a new Ingress has the generation 1 and no address, and changes of its spec are counted', () => {
  const spec = { defaultBackend: backend };
  const { object, errors } = created(ingressKind, {
    spec,
    status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } },
  });
  expect(errors).toEqual([]);
  expect(object).toMatchObject({ metadata: { generation: 1 }, status: { loadBalancer: {} } });
  expect(updated(ingressKind, { spec }, { spec: withPath({}) }).object.metadata.generation).toBe(2);
});

test.each<[string, object, unknown[]]>([
  [
    'neither rules nor a default',
    {},
    ['spec: Invalid value: null: either `defaultBackend` or `rules` must be specified'],
  ],
  ['a rule without paths', { rules: [{ host: 'a.b' }] }, []],
  [
    'a rule with an empty list of paths',
    { rules: [{ http: { paths: [] } }] },
    ['spec.rules[0].http.paths: Required value'],
  ],
  [
    'a path without a type',
    withPath({ pathType: undefined }),
    [`${AT}.pathType: Required value: pathType must be specified`],
  ],
  [
    'an unknown type',
    withPath({ pathType: 'Odd' }),
    [`${AT}.pathType: Unsupported value: "Odd": supported values: "Exact", "ImplementationSpecific", "Prefix"`],
  ],
  ['a relative path', withPath({ path: 'a' }), [`${AT}.path: Invalid value: "a": must be an absolute path`]],
  [
    'no path',
    withPath({ path: undefined, pathType: 'Exact' }),
    [`${AT}.path: Invalid value: "": must be an absolute path`],
  ],
  [
    'a bad path',
    withPath({ path: '/a//b%2f/..' }),
    [
      `${AT}.path: Invalid value: "/a//b%2f/..": must not contain '//'`,
      `${AT}.path: Invalid value: "/a//b%2f/..": must not contain '%2f'`,
      `${AT}.path: Invalid value: "/a//b%2f/..": cannot end with '/..'`,
    ],
  ],
  ['any path for a controller', withPath({ path: '//', pathType: 'ImplementationSpecific' }), []],
  [
    'a relative path for a controller',
    withPath({ path: 'a', pathType: 'ImplementationSpecific' }),
    [`${AT}.path: Invalid value: "a": must be an absolute path`],
  ],
  [
    'no backend',
    withPath({ backend: {} }),
    [`${AT}.backend: Invalid value: "": resource or service backend is required`],
  ],
  [
    'two backends',
    { defaultBackend: { service, resource: { kind: 'A', name: 'b' } } },
    ['spec.defaultBackend: Invalid value: "": cannot set both resource and service backends'],
  ],
  [
    'a resource',
    { defaultBackend: { resource: { apiGroup: 'A', kind: '', name: 'a/b' } } },
    [
      expect.stringMatching(
        /^spec\.defaultBackend\.resource\.apiGroup: Invalid value: "A": a lowercase RFC 1123 subdomain/,
      ),
      'spec.defaultBackend.resource.kind: Required value',
      `spec.defaultBackend.resource.name: Invalid value: "a/b": may not contain '/'`,
    ],
  ],
  [
    'a Service without name and port',
    { defaultBackend: { service: { name: '' } } },
    [
      'spec.defaultBackend.service.name: Required value',
      'spec.defaultBackend: Required value: port name or number is required',
    ],
  ],
  [
    'two ports',
    { defaultBackend: { service: { name: '1', port: { name: 'a', number: 1 } } } },
    [
      expect.stringMatching(/^spec\.defaultBackend\.service\.name: Invalid value: "1": a DNS-1035 label/),
      'spec.defaultBackend: Invalid value: "": cannot set both port name & port number',
    ],
  ],
  [
    'a port that is too large',
    { defaultBackend: { service: { name: 'a', port: { number: 65_536 } } } },
    ['spec.defaultBackend.service.port.number: Invalid value: 65536: must be between 1 and 65535, inclusive'],
  ],
  [
    'an invalid port name',
    { defaultBackend: { service: { name: 'a', port: { name: 'a--b' } } } },
    ['spec.defaultBackend.service.port.name: Invalid value: "a--b": must not contain consecutive hyphens'],
  ],
  [
    'an address as host',
    withHost('192.0.2.1'),
    ['spec.rules[0].host: Invalid value: "192.0.2.1": must be a DNS name, not an IP address'],
  ],
  [
    'an invalid host',
    withHost('A'),
    [expect.stringMatching(/^spec\.rules\[0\]\.host: Invalid value: "A": a lowercase RFC 1123/)],
  ],
  ['a wildcard', withHost('*.a.b'), []],
  [
    'an invalid wildcard',
    withHost('*.*.b'),
    [
      expect.stringMatching(
        /^spec\.rules\[0\]\.host: Invalid value: "\*\.\*\.b": a wildcard DNS-1123 subdomain must start with '\*\.', .* \(e\.g\. '\*\.example\.com', regex used for validation is '\\\*\\\.\[a-z0-9\]/,
      ),
    ],
  ],
  [
    'certificates',
    { defaultBackend: backend, tls: [{ hosts: ['*.a.b', 'A'], secretName: 'A' }] },
    [
      expect.stringMatching(/^spec\.tls\[0\]\.hosts\[1\]: Invalid value: "A": a lowercase RFC 1123/),
      expect.stringMatching(/^spec\.tls\[0\]\.secretName: Invalid value: "A": a lowercase RFC 1123/),
    ],
  ],
  [
    'an invalid class',
    { defaultBackend: backend, ingressClassName: 'A' },
    [expect.stringMatching(/^spec\.ingressClassName: Invalid value: "A": a lowercase RFC 1123/)],
  ],
])('the errors of an Ingress with %s', (_, spec, errors) => {
  expect(errorsOf(JSON.parse(JSON.stringify(spec)))).toEqual(errors);
});

describe('the class of an Ingress', () => {
  const metadata = { annotations: { [CLASS]: 'a' } };
  it('the class must be the same in the annotation and in the spec of a new Ingress', () => {
    const body = { metadata, spec: { defaultBackend: backend, ingressClassName: 'b' } };
    expect(created(ingressKind, body).errors).toEqual([
      `annotations.${CLASS}: Invalid value: "a": must match \`ingressClassName\` when both are specified`,
    ]);
    expect(updated(ingressKind, body, body).errors).toEqual([]);
    expect(created(ingressKind, { ...body, spec: { ...body.spec, ingressClassName: 'a' } }).errors).toEqual([]);
  });

  it('a class that is only in the annotation causes a warning on create', () => {
    const { object } = created(ingressKind, { metadata, spec: { defaultBackend: backend } });
    expect(ingressKind.warnings?.(object)).toEqual([
      `annotation "${CLASS}" is deprecated, please use 'spec.ingressClassName' instead`,
    ]);
    expect(ingressKind.warnings?.(object, object)).toEqual([]);
  });
});

it('an update of an Ingress may keep invalid names of Secrets and invalid rules for wildcards', () => {
  const spec = {
    rules: [{ host: '*.a.b', http: { paths: [{ path: 'a', pathType: 'Exact', backend }] } }],
    tls: [{ secretName: 'A' }],
  };
  expect(updated(ingressKind, { spec }, { spec }).errors).toEqual([]);
  expect(errorsOf(spec)).toHaveLength(2);
});

it('the status of an Ingress has addresses and host names', () => {
  const old = created(ingressKind, { metadata: { resourceVersion: '1' }, spec: { defaultBackend: backend } }).object;
  const withStatus = (ingress: object[]) => ({ ...old, status: { loadBalancer: { ingress } } }) as Ingress;
  const errors = (ingress: object[], before: object[] = []) =>
    ingressKind.subresources['status']?.validate?.(withStatus(ingress), withStatus(before)).map(fieldErrorText);
  expect(errors([{ ip: '192.0.2.1', hostname: 'a.b' }])).toEqual([]);
  expect(errors([{ ip: 'x', hostname: '192.0.2.1' }])).toEqual([
    'status.loadBalancer.ingress[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
    'status.loadBalancer.ingress[0].hostname: Invalid value: "192.0.2.1": must be a DNS name, not an IP address',
  ]);
  expect(errors([{ ip: 'x' }], [{ ip: 'x' }])).toEqual([]);
});

test.each<[string, object, string]>([
  ['no rule', { defaultBackend: backend }, 'a|<none>|*||80|60s'],
  ['a class and certificates', { ingressClassName: 'x', tls: [{}], rules: [{ host: 'a.b' }] }, 'a|x|a.b||80, 443|60s'],
  ['three hosts', { rules: [{ host: 'a' }, { host: 'b' }, { host: 'c' }] }, 'a|<none>|a,b,c||80|60s'],
  ['five hosts', { rules: ['a', 'b', 'c', 'd', 'e'].map((host) => ({ host })) }, 'a|<none>|a,b,c + 2 more...||80|60s'],
  ['four rules and two hosts', { rules: [{}, { host: 'b' }, {}, { host: 'd' }] }, 'a|<none>|b,d||80|60s'],
])('the row of an Ingress with %s', (_, spec, cells) => {
  expect(headings(ingressKind).all).toBe('NAME | CLASS | HOSTS | ADDRESS | PORTS | AGE');
  expect(row(ingressKind, { metadata: { creationTimestamp: '2026-01-31T11:59:00Z' }, spec }).join('|')).toBe(cells);
});

it('the row of an Ingress shows each address once', () => {
  const ingress = [{ ip: '192.0.2.2' }, { hostname: 'a.b' }, { ip: '192.0.2.2' }, {}];
  expect(row(ingressKind, { status: { loadBalancer: { ingress } } })[3]).toBe('192.0.2.2,a.b');
});
