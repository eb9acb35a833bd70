/**
 * The Secret: confidential data as keys and values.
 *
 * Invariants: stringData is write-only and never stored; no validation error contains a value of data.
 * Source: pkg/registry/core/secret and pkg/apis/core of v1.33.
 */
import type { Secret } from '../../../generated/types.ts';
import type { KindDefinition } from '../../../kind.ts';
import { ageCell, ageColumn, column, nameColumn } from '../../../table.ts';
import { validateSecretCreate, validateSecretUpdate } from './validation.ts';

function defaultSecret(secret: Secret): void {
  secret.type ||= 'Opaque';
  const { stringData } = secret;
  delete secret.stringData;
  if (stringData === undefined || Object.keys(stringData).length === 0) return;
  const encoded = Object.entries(stringData).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
  secret.data = { ...secret.data, ...Object.fromEntries(encoded) };
}

export const secretKind: KindDefinition<Secret> = {
  group: '',
  version: 'v1',
  kind: 'Secret',
  plural: 'secrets',
  singular: 'secret',
  shortNames: [],
  categories: [],
  namespaced: true,
  schema: 'Secret',
  defaults: defaultSecret,
  validateCreate: validateSecretCreate,
  validateUpdate: validateSecretUpdate,
  subresources: {},
  selectableFields: ({ type = '' }) => ({ type }),
  columns: [nameColumn, column('Type', 'The type of the Secret.'), column('Data', 'The number of keys.'), ageColumn],
  row: ({ metadata, type = '', data = {} }, { now }) => [
    metadata.name,
    type,
    Object.keys(data).length,
    ageCell(metadata.creationTimestamp, now),
  ],
};
