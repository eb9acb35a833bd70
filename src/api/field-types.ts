/**
 * Determines from the facts how server-side apply merges the fields of a type.
 * Source: the listType, listMapKey, structType and mapType markers of the types of v1.33; schemaconv of k8s.io/kube-openapi, which uses the
 * patch strategy of a list without a listType.
 */
import type { FieldType } from '../machinery/field-ownership/typed-value.ts';
import type { JsonObject } from '../machinery/json-value.ts';
import { type FieldFacts, jsonFields, perType, structOf, typeFacts } from './facts/facts.ts';

const atomic: FieldType = { kind: 'atomic' };

/** Throws an Error if there are no facts about the type. */
export const fieldTypeOf = perType((type: string): FieldType => {
  const known = new Map<string, FieldType>();
  const fields = jsonFields(type);
  return {
    kind: 'struct',
    field(name) {
      const field = fields.get(name);
      const made = known.get(name);
      if (made !== undefined || field === undefined) return made;
      const fieldType = typeOfField(field);
      known.set(name, fieldType);
      return fieldType;
    },
  };
});

/** Returns how a single value of the field, or an element of its list or map, is merged. */
function elementType(field: FieldFacts): FieldType {
  const struct = structOf(field);
  if (struct === undefined) return atomic;
  return typeFacts(struct)?.atomic === true && !field.granular ? atomic : fieldTypeOf(struct);
}

/** Returns the keys of a list that is merged by keys, in the order of the facts; undefined for other lists. */
function mapKeysOf({ listType, mapKeys, patchStrategy, mergeKey }: FieldFacts): readonly string[] | undefined {
  if (listType !== undefined) return listType === 'map' ? mapKeys : undefined;
  return patchStrategy?.startsWith('merge') && mergeKey !== undefined ? [mergeKey] : undefined;
}

function typeOfField(field: FieldFacts): FieldType {
  const { container, listType, patchStrategy } = field;
  if (field.atomic) return atomic;
  if (container === undefined) return elementType(field);
  if (container === 'map') return { kind: 'map', values: elementType(field) };
  const keys = mapKeysOf(field);
  if (keys !== undefined)
    return { kind: 'listMap', keys, defaults: defaultsOf(field, keys), items: elementType(field) };
  const isSet = listType === 'set' || (listType === undefined && patchStrategy?.startsWith('merge'));
  return isSet ? { kind: 'set' } : atomic;
}

function defaultsOf({ ref = '' }: FieldFacts, keys: readonly string[]): JsonObject {
  const defaults: JsonObject = {};
  for (const key of keys) {
    const value = jsonFields(ref).get(key)?.default;
    if (value !== undefined) defaults[key] = value;
  }
  return defaults;
}
