/**
 * Decodes JSON in an annotation like Go's encoding/json: field names are case-insensitive, and null means absent.
 *
 * The annotations have not been validated yet. Therefore a text that exceeds the limit for all annotations is rejected, and so is JSON
 * that is nested deeper than a request body may be.
 */
import { isDeeperThan, type JsonObject, MAX_DEPTH } from '../../../../../machinery/json-value.ts';
import { ANNOTATIONS_LIMIT_BYTES } from '../../../../../machinery/object-meta.ts';
import { decode, type Shape, schemaTypes } from '../../../../schema.ts';

/** The path of an annotation in errors and warnings. */
export const annotationPath = (key: string): string => `metadata.annotations[${key}]`;

export interface AnnotationJson {
  value: JsonObject;
  /** The paths of fields that the type does not have. */
  unknownFields: string[];
  /** Why the text cannot be decoded; undefined if it can. */
  failure?: string;
}

/**
 * Decodes the text as a value of the type. If `wrap` is given, the text is only the value of the field `wrap` of the
 * type, and the other fields are decoded as absent.
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

/** A fault of an annotation that represents a field: the text cannot be decoded, or differs from the field. */
export interface FormFault {
  path: string;
  text: string;
  cause: string;
  /** Whether the annotation was decoded but differs from the field. */
  differs: boolean;
}

export const differing = (path: string, text: string, field: string): FormFault => ({
  path,
  text,
  cause: `must be equal to spec.${field} if both are set`,
  differs: true,
});

/** Caches the field names of each type, by their lowercase form. */
const namesInAnyCase = new Map<string, ReadonlyMap<string, string>>();

function fieldNames(type: string): ReadonlyMap<string, string> {
  const known = namesInAnyCase.get(type);
  if (known !== undefined) return known;
  const names = new Map(Object.keys(schemaTypes[type] ?? {}).map((name) => [name.toLowerCase(), name]));
  namesInAnyCase.set(type, names);
  return names;
}

/** Returns a copy of the value in which known field names are written as in the schema. */
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
