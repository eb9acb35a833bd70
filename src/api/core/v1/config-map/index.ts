/** The ConfigMap: configuration as keys and values. Source: pkg/registry/core/configmap and pkg/apis/core of v1.33. */
import { type FieldError, invalid, tooLong } from '../../../../machinery/field-error.ts';
import { configMapKeyErrors } from '../../../../machinery/names.ts';
import { kind } from '../../../declaration.ts';
import type { ConfigMap } from '../../../generated/types.ts';
import { onUpdate } from '../../../rules.ts';
import { ageColumn, column, nameColumn } from '../../../table.ts';
import { DATA_LIMIT_BYTES, immutableDataErrors } from '../immutable-data.ts';

function validateContent({ data = {}, binaryData = {} }: ConfigMap): FieldError[] {
  const errors: FieldError[] = [];
  let bytes = 0;
  for (const [key, value] of Object.entries(data)) {
    const field = `data[${key}]`;
    errors.push(...configMapKeyErrors(key).map((text) => invalid(field, key, text)));
    if (Object.hasOwn(binaryData, key)) errors.push(invalid(field, key, 'duplicate of key present in binaryData'));
    bytes += Buffer.byteLength(value);
  }
  for (const [key, value] of Object.entries(binaryData)) {
    errors.push(...configMapKeyErrors(key).map((text) => invalid(`binaryData[${key}]`, key, text)));
    bytes += Buffer.byteLength(value, 'base64');
  }
  // Upstream reports this error without a field, because it concerns the whole object.
  if (bytes > DATA_LIMIT_BYTES) errors.push(tooLong('', DATA_LIMIT_BYTES));
  return errors;
}

export const configMapKind = kind<ConfigMap>('v1', 'ConfigMap', {
  shortNames: ['cm'],
  rules: [onUpdate((map, old) => immutableDataErrors(map, old, ['data', 'binaryData'])), validateContent],
  columns: [
    nameColumn,
    column(
      'Data',
      'The number of keys.',
      ({ data = {}, binaryData = {} }) => Object.keys(data).length + Object.keys(binaryData).length,
    ),
    ageColumn,
  ],
});
