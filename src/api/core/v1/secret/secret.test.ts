import { describe, expect, it } from 'vitest';
import type { Secret } from '../../../generated/types.ts';
import { created, headings, row, updated } from '../../../testing.ts';
import { secretKind } from './index.ts';

const base64 = (text: string): string => Buffer.from(text).toString('base64');

it('stringData of a Secret is merged into data and takes precedence', () => {
  const { object, errors } = created(secretKind, {
    data: { a: base64('old'), b: base64('b') },
    stringData: { a: 'new', ü: '' },
  });
  expect(object.data).toEqual({ a: base64('new'), b: base64('b'), ü: '' });
  expect(object.stringData).toBeUndefined();
  expect(object.type).toBe('Opaque');
  expect(errors).toEqual([expect.stringMatching(/^data\[ü\]: Invalid value: "ü": a valid config key must consist of/)]);
});

it('a Secret with empty stringData gets no data', () => {
  expect(created(secretKind, { stringData: {} }).object.data).toBeUndefined();
});

describe('validation of Secrets', () => {
  const metadata = { name: 'a', annotations: { 'kubernetes.io/service-account.name': 'default' } };
  const token = { type: 'kubernetes.io/service-account-token', metadata };
  it.each<[string, Partial<Secret>, string[]]>([
    ['with an unknown type', { type: 'any/thing' }, []],
    [
      'with a token, without the account',
      { type: 'kubernetes.io/service-account-token' },
      ['metadata.annotations[kubernetes.io/service-account.name]: Required value'],
    ],
    [
      'with a docker config, without its key',
      { type: 'kubernetes.io/dockerconfigjson' },
      ['data[.dockerconfigjson]: Required value'],
    ],
    [
      'with a docker config that is not JSON',
      { type: 'kubernetes.io/dockerconfigjson', stringData: { '.dockerconfigjson': 'secret words' } },
      ['data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": must be a JSON object'],
    ],
    [
      'with a docker config that is a list',
      { type: 'kubernetes.io/dockerconfigjson', stringData: { '.dockerconfigjson': '[]' } },
      ['data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": must be a JSON object'],
    ],
    [
      'with a docker config that is a text',
      { type: 'kubernetes.io/dockerconfigjson', stringData: { '.dockerconfigjson': '"x"' } },
      ['data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": must be a JSON object'],
    ],
    ['with a token and the account', token, []],
    ['with basic auth and a password', { type: 'kubernetes.io/basic-auth', stringData: { password: '' } }, []],
    ['with ssh auth and its key', { type: 'kubernetes.io/ssh-auth', stringData: { 'ssh-privatekey': 'x' } }, []],
    ['with an empty dockercfg', { type: 'kubernetes.io/dockercfg', stringData: { '.dockercfg': '{}' } }, []],
    [
      'with basic auth, without its keys',
      { type: 'kubernetes.io/basic-auth' },
      ['data[%s][username]: Required value', 'data[%s][password]: Required value'],
    ],
    ['with basic auth and a user name', { type: 'kubernetes.io/basic-auth', stringData: { username: '' } }, []],
    [
      'with ssh auth, without its key',
      { type: 'kubernetes.io/ssh-auth' },
      ['data[%s][ssh-privatekey]: Required value'],
    ],
    [
      'with a certificate, without the private key',
      { type: 'kubernetes.io/tls', stringData: { 'tls.crt': '' } },
      ['data[tls.key]: Required value'],
    ],
    ['with 1 MiB of data', { stringData: { a: 'x'.repeat(1024 * 1024) } }, []],
    [
      'with more than 1 MiB of data',
      { stringData: { a: 'x'.repeat(1024 * 1024), b: 'x' } },
      ['data: Too long: may not be more than 1048576 bytes'],
    ],
  ])('the errors of a new Secret %s are reported', (_, secret, expected) => {
    expect(created(secretKind, secret).errors).toEqual(expected);
  });
});

describe('update of Secrets', () => {
  it.each<[string, Partial<Secret>, Partial<Secret>, string[]]>([
    ['may change data', { stringData: { a: '1' } }, { stringData: { a: '2' } }, []],
    ['may not change the type', { type: 'x/y' }, {}, ['type: Invalid value: "Opaque": field is immutable']],
    [
      'may write an immutable Secret unchanged',
      { immutable: true, stringData: { a: '1' } },
      { immutable: true, stringData: { a: '1' } },
      [],
    ],
    [
      'may not change an immutable Secret',
      { immutable: true, stringData: { a: '1' } },
      { stringData: { a: '2' } },
      [
        'immutable: Forbidden: field is immutable when `immutable` is set',
        'data: Forbidden: field is immutable when `immutable` is set',
      ],
    ],
  ])('an update of a Secret %s', (_, from, to, expected) => {
    expect(updated(secretKind, from, to).errors).toEqual(expected);
  });
});

it('the table of Secrets shows type and number of keys, and the type is selectable', () => {
  expect(headings(secretKind).all).toBe('NAME | TYPE | DATA | AGE');
  expect(row(secretKind, { stringData: { a: '1', b: '2' } })).toEqual(['a', 'Opaque', 2, '<unknown>']);
  expect(secretKind.selectableFields?.(created(secretKind, {}).object)).toEqual({ type: 'Opaque' });
});
