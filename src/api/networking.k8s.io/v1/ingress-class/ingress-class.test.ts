import { expect, it, test } from 'vitest';
import type { IngressClass } from '../../../generated/types.ts';
import { created, headings, row, updated } from '../../../testing.ts';
import { defaultIngressClass, ingressClassKind } from './index.ts';

const controller = 'example.com/controller';
const parameters = { kind: 'Settings', name: 'a' };
const errorsOf = (spec: object): string[] => created(ingressClassKind, { spec }).errors;
const withParameters = (changes: object) => ({ controller, parameters: { ...parameters, ...changes } });

it('the parameters of an IngressClass are of the cluster by default', () => {
  const { object, errors } = created(ingressClassKind, { spec: { controller, parameters } });
  expect(errors).toEqual([]);
  expect(object).toMatchObject({ metadata: { generation: 1 }, spec: { parameters: { scope: 'Cluster' } } });
});

test.each<[string, object, unknown[]]>([
  ['no controller', {}, ['spec.controller: Required value']],
  [
    'a controller without a path',
    { controller: 'a' },
    ['spec.controller: Invalid value: "a": must be a domain-prefixed path (such as "acme.io/foo")'],
  ],
  [
    'a controller with an invalid domain and path',
    { controller: 'A/ ' },
    [
      expect.stringMatching(/^spec\.controller: Invalid value: "A": a lowercase RFC 1123 subdomain/),
      `spec.controller: Invalid value: " ": Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')`,
    ],
  ],
  [
    'a long controller',
    { controller: `a.b/${'c'.repeat(247)}` },
    ['spec.controller: Too long: may not be more than 250 bytes'],
  ],
  ['parameters of a namespace', withParameters({ scope: 'Namespace', namespace: 'a', apiGroup: 'a.b' }), []],
  [
    'no namespace',
    withParameters({ scope: 'Namespace' }),
    ["spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"],
  ],
  [
    'an invalid namespace',
    withParameters({ scope: 'Namespace', namespace: 'A' }),
    [expect.stringMatching(/^spec\.parameters\.namespace: Invalid value: "A": a lowercase RFC 1123 label/)],
  ],
  [
    'a namespace in the cluster',
    withParameters({ namespace: 'a' }),
    ["spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"],
  ],
  [
    'an unknown scope',
    withParameters({ scope: 'Odd' }),
    ['spec.parameters.scope: Unsupported value: "Odd": supported values: "Cluster", "Namespace"'],
  ],
  [
    'invalid parameters',
    withParameters({ apiGroup: 'A', kind: '', name: 'a%b' }),
    [
      expect.stringMatching(/^spec\.parameters\.apiGroup: Invalid value: "A": a lowercase RFC 1123 subdomain/),
      'spec.parameters.kind: Required value',
      `spec.parameters.name: Invalid value: "a%b": may not contain '%'`,
    ],
  ],
])('the errors of an IngressClass with %s', (_, spec, errors) => {
  expect(errorsOf(spec)).toEqual(errors);
});

it('the controller of an IngressClass cannot change', () => {
  const spec = { controller };
  const { object } = updated(ingressClassKind, { spec }, { spec: { controller, parameters } });
  expect(object.metadata.generation).toBe(2);
  expect(updated(ingressClassKind, { spec }, { spec: { controller: 'a.b/c' } }).errors).toEqual([
    'spec.controller: Invalid value: "a.b/c": field is immutable',
  ]);
});

it('the newest of several default IngressClasses is used', () => {
  const classOf = (name: string, creationTimestamp: string, value = 'true'): IngressClass => ({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'IngressClass',
    metadata: { name, creationTimestamp, annotations: { 'ingressclass.kubernetes.io/is-default-class': value } },
  });
  const old = classOf('old', '2026-01-01T00:00:00Z');
  expect(defaultIngressClass([])).toBeUndefined();
  expect(defaultIngressClass([classOf('no', '2026-01-03T00:00:00Z', 'false'), old])).toBe('old');
  expect(defaultIngressClass([classOf('b', '2026-01-02T00:00:00Z'), classOf('a', '2026-01-02T00:00:00Z'), old])).toBe(
    'a',
  );
});

it('the table of IngressClasses shows the parameters', () => {
  expect(headings(ingressClassKind).all).toBe('NAME | CONTROLLER | PARAMETERS | AGE');
  const metadata = { creationTimestamp: '2026-01-31T11:59:00Z' };
  const rowOf = (spec: object) => row(ingressClassKind, { metadata, spec }).join(' ');
  expect(rowOf({ controller })).toBe(`a ${controller} <none> 60s`);
  expect(rowOf(withParameters({}))).toBe(`a ${controller} Settings/a 60s`);
  expect(rowOf(withParameters({ apiGroup: 'b.c' }))).toBe(`a ${controller} Settings.b.c/a 60s`);
});
