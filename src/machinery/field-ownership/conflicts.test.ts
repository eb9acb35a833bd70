import { expect, test } from 'vitest';
import { MAX_ERROR_CHARS } from '../error-text.ts';
import type { Status } from '../meta.ts';
import type { ApiError } from '../status.ts';
import { refuseConflicts } from './conflicts.ts';
import type { FieldSet } from './field-set.ts';

function refusalOf(fields: FieldSet): Status {
  try {
    refuseConflicts([{ entry: { manager: 'me', operation: 'Apply' }, fields }]);
  } catch (error) {
    return (error as ApiError).status;
  }
  throw new Error('there was no conflict');
}

test('conflicts below a long key are listed up to the limit of a response', () => {
  const key = 'a'.repeat(10_000);
  const names = Array.from({ length: 1000 }, (_, index) => [`k:{"name":"e${index}"}`, {}]);
  const fields: FieldSet = { [`k:{"name":"${key}"}`]: { 'f:env': Object.fromEntries(names) } };
  const { message = '', details } = refusalOf(fields);
  expect(message.length).toBeLessThan(MAX_ERROR_CHARS);
  expect(details?.causes?.length).toBe(104);
  expect(message).toMatch(/^Apply failed with 1000 conflicts: conflicts with "me":\n- \[name="aaa/);
  expect(message.endsWith(`- [name="${key}"].env[name="e191"]\nand 896 more`)).toBe(true);
});

test('a conflict that is too long for a response is truncated', () => {
  const fields: FieldSet = { [`f:${'a'.repeat(2 * MAX_ERROR_CHARS)}`]: {} };
  const { message = '', details } = refusalOf(fields);
  expect(message).toMatch(/^Apply failed with 1 conflict: conflict with "me": \.a+\.\.\.$/);
  expect([message.length, details?.causes?.[0]?.field?.length]).toEqual([MAX_ERROR_CHARS + 3, MAX_ERROR_CHARS + 3]);
});
