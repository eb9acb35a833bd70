import { expect, it, test } from 'vitest';
import { created, headings, row, updated } from '../../../testing.ts';
import { ipAddressKind } from './index.ts';

const parentRef = { resource: 'services', namespace: 'default', name: 'web' };
const bodyOf = (name: string, spec: object = { parentRef }) => ({ metadata: { name }, spec });

test.each<[string, string[]]>([
  ['10.0.0.1', []],
  ['fd00::1', []],
  ['FD00::1', ['metadata.name: Invalid value: "FD00::1": must be in canonical form ("fd00::1")']],
  [
    '10.0.0.01',
    ['metadata.name: Invalid value: "10.0.0.01": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'],
  ],
])('the errors of an IPAddress with the name %s', (name, errors) => {
  expect(created(ipAddressKind, bodyOf(name)).errors).toEqual(errors);
});

test.each<[string, object, unknown[]]>([
  ['no parent', {}, ['spec.parentRef: Required value']],
  [
    'an empty parent',
    { parentRef: {} },
    ['spec.parentRef.resource: Required value', 'spec.parentRef.name: Required value'],
  ],
  [
    'an invalid parent',
    { parentRef: { group: 'A', resource: 'a/b', name: 'a%b', namespace: '..' } },
    [
      expect.stringMatching(/^spec\.parentRef\.group: Invalid value: "A": a lowercase RFC 1123 subdomain/),
      `spec.parentRef.resource: Invalid value: "a/b": may not contain '/'`,
      `spec.parentRef.name: Invalid value: "a%b": may not contain '%'`,
      `spec.parentRef.namespace: Invalid value: "..": may not be '..'`,
    ],
  ],
])('the errors of an IPAddress with %s', (_, spec, errors) => {
  expect(created(ipAddressKind, bodyOf('10.0.0.1', spec)).errors).toEqual(errors);
});

it('the parent of an IPAddress cannot change', () => {
  const body = bodyOf('10.0.0.1');
  expect(updated(ipAddressKind, body, body).errors).toEqual([]);
  const changed = { ...parentRef, name: 'other' };
  expect(updated(ipAddressKind, body, bodyOf('10.0.0.1', { parentRef: changed })).errors).toEqual([
    `spec.parentRef: Invalid value: ${JSON.stringify(changed)}: field is immutable`,
  ]);
});

it('the table of IPAddresses shows the parents', () => {
  expect(ipAddressKind.shortNames).toEqual(['ip']);
  expect(headings(ipAddressKind).all).toBe('NAME | PARENTREF | AGE');
  const parentOf = (spec: object) => row(ipAddressKind, bodyOf('10.0.0.1', spec))[1];
  expect(parentOf({ parentRef })).toBe('services/default/web');
  expect(parentOf({ parentRef: { group: 'a.b', resource: 'gateways', name: 'c' } })).toBe('gateways.a.b/c');
  expect(parentOf({})).toBe('<none>');
});
