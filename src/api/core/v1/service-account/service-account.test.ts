import { expect, it } from 'vitest';
import { created, headings, row, updated } from '../../../testing.ts';
import { serviceAccountKind } from './index.ts';

const secrets = [{ name: 's', namespace: 'other', kind: 'Secret' }];

it('a ServiceAccount keeps only the names of its Secrets', () => {
  expect(created(serviceAccountKind, { secrets }).object.secrets).toEqual([{ name: 's' }]);
  expect(updated(serviceAccountKind, {}, { secrets }).object.secrets).toEqual([{ name: 's' }]);
});

it('a ServiceAccount must have a valid name', () => {
  expect(created(serviceAccountKind, { metadata: { name: 'A' } }).errors).toHaveLength(1);
  expect(created(serviceAccountKind, {}).errors).toEqual([]);
});

it('the subresource token of ServiceAccounts is implemented by the API server', () => {
  const token = serviceAccountKind.subresources['token'];
  expect(token?.bodyKind?.kind).toBe('TokenRequest');
  expect(token?.apply).toBeUndefined();
});

it('the table of ServiceAccounts counts the Secrets', () => {
  expect(headings(serviceAccountKind).all).toBe('NAME | SECRETS | AGE');
  expect(row(serviceAccountKind, { secrets })).toEqual(['a', 1, '<unknown>']);
});
