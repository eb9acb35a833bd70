/** The ConfigMap: configuration as keys and values. Source: pkg/registry/core/configmap and pkg/apis/core of v1.33. */
import { type FieldError, invalid, tooLong } from '../../../../machinery/field-error.ts';
import { configMapKeyErrors, dns1123SubdomainErrors } from '../../../../machinery/names.ts';
import { validateObjectMeta, validateObjectMetaUpdate } from '../../../../machinery/object-meta.ts';
import type { ConfigMap } from '../../../generated/types.ts';
import type { KindDefinition } from '../../../kind.ts';
import { ageCell, ageColumn, column, nameColumn } from '../../../table.ts';
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

const validateUpdate = (map: ConfigMap, old: ConfigMap): FieldError[] => [
  ...validateObjectMetaUpdate(map.metadata, old.metadata),
  ...immutableDataErrors(map, old, ['data', 'binaryData']),
  ...validateContent(map),
];

export const configMapKind: KindDefinition<ConfigMap> = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  singular: 'configmap',
  shortNames: ['cm'],
  categories: [],
  namespaced: true,
  schema: 'ConfigMap',
  validateCreate: (map) => [
    ...validateObjectMeta(map.metadata, { namespaced: true, nameErrors: dns1123SubdomainErrors }),
    ...validateContent(map),
  ],
  validateUpdate,
  subresources: {},
  columns: [nameColumn, column('Data', 'The number of keys.'), ageColumn],
  row: ({ metadata, data = {}, binaryData = {} }, { now }) => [
    metadata.name,
    Object.keys(data).length + Object.keys(binaryData).length,
    ageCell(metadata.creationTimestamp, now),
  ],
};
