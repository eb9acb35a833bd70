import { describe, expect, it } from 'vitest';
import type { Secret } from '../../../generated/types.ts';
import { created, headings, row, updated } from '../../../testing.ts';
import { secretKind } from './index.ts';

const base64 = (text: string): string => Buffer.from(text).toString('base64');

it('stringData becomes data, over what is there', () => {
  const { object, errors } = created(secretKind, {
    data: { a: base64('old'), b: base64('b') },
    stringData: { a: 'new', ü: '' },
  });
  expect(object.data).toEqual({ a: base64('new'), b: base64('b'), ü: '' });
  expect(object.stringData).toBeUndefined();
  expect(object.type).toBe('Opaque');
  expect(errors).toEqual([expect.stringMatching(/^data\[ü\]: Invalid value: "ü": a valid config key must consist of/)]);
});

describe('validation', () => {
  it.each<[Partial<Secret>, string[]]>([
    [{ type: 'any/thing' }, []],
    [
      { type: 'kubernetes.io/service-account-token' },
      ['metadata.annotations[kubernetes.io/service-account.name]: Required value'],
    ],
    [{ type: 'kubernetes.io/dockerconfigjson' }, ['data[.dockerconfigjson]: Required value']],
    [
      { type: 'kubernetes.io/dockerconfigjson', stringData: { '.dockerconfigjson': 'secret words' } },
      ['data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": must be a JSON object'],
    ],
    [{ type: 'kubernetes.io/dockercfg', stringData: { '.dockercfg': '{}' } }, []],
    [
      { type: 'kubernetes.io/basic-auth' },
      ['data[%s][username]: Required value', 'data[%s][password]: Required value'],
    ],
    [{ type: 'kubernetes.io/basic-auth', stringData: { username: '' } }, []],
    [{ type: 'kubernetes.io/ssh-auth' }, ['data[%s][ssh-privatekey]: Required value']],
    [{ type: 'kubernetes.io/tls', stringData: { 'tls.crt': '' } }, ['data[tls.key]: Required value']],
    [{ stringData: { a: 'x'.repeat(1024 * 1024) } }, []],
    [{ stringData: { a: 'x'.repeat(1024 * 1024), b: 'x' } }, ['data: Too long: may not be more than 1048576 bytes']],
  ])('%#', (secret, expected) => {
    expect(created(secretKind, secret).errors).toEqual(expected);
  });
});

describe('update', () => {
  it.each<[Partial<Secret>, Partial<Secret>, string[]]>([
    [{ stringData: { a: '1' } }, { stringData: { a: '2' } }, []],
    [{ type: 'x/y' }, {}, ['type: Invalid value: "Opaque": field is immutable']],
    [{ immutable: true, stringData: { a: '1' } }, { immutable: true, stringData: { a: '1' } }, []],
    [
      { immutable: true, stringData: { a: '1' } },
      { stringData: { a: '2' } },
      [
        'immutable: Forbidden: field is immutable when `immutable` is set',
        'data: Forbidden: field is immutable when `immutable` is set',
      ],
    ],
  ])('%j to %j', (from, to, expected) => {
    expect(updated(secretKind, from, to).errors).toEqual(expected);
  });
});

it('table and fields', () => {
  expect(headings(secretKind).all).toBe('NAME | TYPE | DATA | AGE');
  expect(row(secretKind, { stringData: { a: '1', b: '2' } })).toEqual(['a', 'Opaque', 2, '<unknown>']);
  expect(secretKind.selectableFields?.(created(secretKind, {}).object)).toEqual({ type: 'Opaque' });
});
