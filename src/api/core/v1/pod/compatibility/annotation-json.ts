/**
 * JSON in an annotation, read as encoding/json reads it: names of fields in any case, and null as nothing.
 *
 * It is read before the annotations are validated: what is longer than all of them may be, or nested deeper than a body, is not
 * looked into.
 */

import { isDeeperThan, type JsonObject, MAX_DEPTH } from '../../../../../machinery/json-value.ts';
import { ANNOTATIONS_LIMIT_BYTES } from '../../../../../machinery/object-meta.ts';
import { decode, type Shape, schemaTypes } from '../../../../schema.ts';

export interface AnnotationJson {
  value: JsonObject;
  /** Paths of the fields that the type does not have. */
  unknownFields: string[];
  /** Why the JSON cannot be read. */
  failure?: string;
}

/**
 * The text as a value of the type. `wrap`: the field of the type whose value the text is; absent: the text is the whole
 * value.
 */
export function readAnnotationJson(text: string, type: string, wrap?: string): AnnotationJson {
  const failed = (failure: string): AnnotationJson => ({ value: {}, unknownFields: [], failure });
  if (Buffer.byteLength(text) > ANNOTATIONS_LIMIT_BYTES) {
    return failed(`may not be more than ${ANNOTATIONS_LIMIT_BYTES} bytes`);
  }
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    return failed((error as Error).message);
  }
  if (isDeeperThan(MAX_DEPTH, parsed)) return failed('exceeded max depth');
  const given = wrap === undefined ? (parsed ?? {}) : { [wrap]: parsed };
  const { value, unknownFields, typeErrors } = decode(type, withFieldNames(given, { ref: type }));
  return typeErrors[0] === undefined ? { value, unknownFields } : failed(typeErrors[0]);
}

/** What is wrong with an annotation that stands for a field. */
export interface FormFault {
  path: string;
  text: string;
  cause: string;
  /** It can be read, but says something else than the field. */
  differs: boolean;
}

export const differing = (path: string, text: string, field: string): FormFault => ({
  path,
  text,
  cause: `must be equal to spec.${field} where both are given`,
  differs: true,
});

/** Per type, the names of its fields by these names in lower case. */
const namesInAnyCase = new Map<string, ReadonlyMap<string, string>>();

function fieldNames(type: string): ReadonlyMap<string, string> {
  const known = namesInAnyCase.get(type);
  if (known !== undefined) return known;
  const names = new Map(Object.keys(schemaTypes[type] ?? {}).map((name) => [name.toLowerCase(), name]));
  namesInAnyCase.set(type, names);
  return names;
}

/** The value with the names of its fields as the schema writes them. */
function withFieldNames(value: unknown, shape: Shape): unknown {
  if (typeof shape !== 'object' || typeof value !== 'object' || value === null) return value;
  if ('array' in shape) return Array.isArray(value) ? value.map((item) => withFieldNames(item, shape.array)) : value;
  if (Array.isArray(value)) return value;
  const entries = Object.entries(value);
  if ('map' in shape) return Object.fromEntries(entries.map(([key, item]) => [key, withFieldNames(item, shape.map)]));
  const names = fieldNames(shape.ref);
  return Object.fromEntries(
    entries.map(([key, item]) => {
      const name = names.get(key.toLowerCase());
      const field = name === undefined ? undefined : schemaTypes[shape.ref]?.[name];
      return field === undefined ? [key, item] : [name, withFieldNames(item, field.shape)];
    }),
  );
}
