import { expect, test } from 'vitest';
import { MAX_ERROR_CHARS } from './error-text.ts';
import { invalid, MAX_LISTED_ERRORS } from './field-error.ts';
import type { StatusCause } from './meta.ts';
import { ApiError, badRequest, invalidObject } from './status.ts';

const long = 'x'.repeat(MAX_ERROR_CHARS + 1);
const cut = `${'x'.repeat(MAX_ERROR_CHARS)}...`;
const causesOf = (causes: StatusCause[]) =>
  new ApiError({ ...badRequest('a').status, details: { causes } }).status.details?.causes;

test('a status of usual length is not changed', () => {
  const { status } = invalidObject({ group: '', kind: 'Pod' }, 'a', [invalid('spec.a', 'x', 'must be less')]);
  expect(status).toEqual({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: 'Pod "a" is invalid: spec.a: Invalid value: "x": must be less',
    reason: 'Invalid',
    details: {
      name: 'a',
      kind: 'Pod',
      causes: [{ reason: 'FieldValueInvalid', message: 'Invalid value: "x": must be less', field: 'spec.a' }],
    },
    code: 422,
  });
});

test('the message and the name in a status are truncated', () => {
  const error = new ApiError({ ...badRequest(long).status, details: { name: long } });
  expect(error.message).toBe(cut);
  expect(error.status).toMatchObject({ message: cut, details: { name: cut } });
});

test('causes in a status are listed up to a total length, and the first one is truncated', () => {
  const quarters = Array.from({ length: 6 }, () => ({ message: 'x'.repeat(MAX_ERROR_CHARS / 4) }));
  expect(causesOf(quarters)).toEqual(quarters.slice(0, 4));
  expect(causesOf([{ reason: 'a', message: long, field: long }, ...quarters])).toEqual([
    { reason: 'a', message: cut, field: cut },
  ]);
  const many = Array.from({ length: MAX_LISTED_ERRORS + 1 }, () => ({ message: 'x' }));
  expect(causesOf(many)).toHaveLength(MAX_LISTED_ERRORS);
});
