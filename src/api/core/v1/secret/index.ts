/**
 * The Secret: confidential data as keys and values.
 *
 * Invariants: stringData is write-only and never stored; no validation error contains a value of data.
 * Source: pkg/registry/core/secret and pkg/apis/core of v1.33.
 */
import { kind } from '../../../declaration.ts';
import type { Secret } from '../../../generated/types.ts';
import { immutable, onUpdate } from '../../../rules.ts';
import { ageColumn, column, nameColumn } from '../../../table.ts';
import { immutableDataErrors } from '../immutable-data.ts';
import { validateContent } from './validation.ts';

function defaultSecret(secret: Secret): void {
  secret.type ||= 'Opaque';
  const { stringData } = secret;
  delete secret.stringData;
  if (stringData === undefined || Object.keys(stringData).length === 0) return;
  const encoded = Object.entries(stringData).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
  secret.data = { ...secret.data, ...Object.fromEntries(encoded) };
}

export const secretKind = kind<Secret>('v1', 'Secret', {
  defaults: defaultSecret,
  rules: [immutable('type'), onUpdate((secret, old) => immutableDataErrors(secret, old, ['data'])), validateContent],
  selectableFields: ({ type = '' }) => ({ type }),
  columns: [
    nameColumn,
    column('Type', 'The type of the Secret.', ({ type = '' }) => type),
    column('Data', 'The number of keys.', ({ data = {} }) => Object.keys(data).length),
    ageColumn,
  ],
});
