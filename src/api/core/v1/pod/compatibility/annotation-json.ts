/**
 * Decodes JSON in an annotation like Go's encoding/json: field names are case-insensitive, and null means absent.
 *
 * The annotations have not been validated yet. Therefore a text that exceeds the limit for all annotations is rejected, and so is JSON that
 * is nested deeper than a request body may be.
 */
import { isDeeperThan, type JsonObject, MAX_DEPTH } from '../../../../../machinery/json-value.ts';
import { ANNOTATIONS_LIMIT_BYTES } from '../../../../../machinery/object-meta.ts';
import { type FieldFacts, jsonFields, perType, structOf } from '../../../../facts/facts.ts';
import { decode } from '../../../../schema.ts';

/** The path of an annotation in errors and warnings. */
export const annotationPath = (key: string): string => `metadata.annotations[${key}]`;

export interface AnnotationJson {
  value: JsonObject;
  /** The paths of fields that the type does not have. */
  unknownFields: string[];
  /** Absent if the text was decoded. */
  failure?: string;
}

/**
 * Decodes the text as a value of the type with the full name `type`. A text that cannot be decoded gives a `failure` and an empty `value`.
 * `wrap`: the text is only the value of this field of the type.
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
  const { value, unknownFields, typeErrors } = decode(type, withFieldNames(given, type));
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

const namesInAnyCase = perType(
  (type): ReadonlyMap<string, string> =>
    new Map([...jsonFields(type).keys()].map((name) => [name.toLowerCase(), name])),
);

function fieldWithNames(value: unknown, field: FieldFacts): unknown {
  const struct = structOf(field);
  if (struct === undefined || typeof value !== 'object' || value === null) return value;
  if (field.container === undefined) return withFieldNames(value, struct);
  if (field.container === 'list')
    return Array.isArray(value) ? value.map((item) => withFieldNames(item, struct)) : value;
  if (Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withFieldNames(item, struct)]));
}

/** Returns a copy in which known field names have the case that the type declares. */
function withFieldNames(value: unknown, type: string): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const names = namesInAnyCase(type);
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      const field = jsonFields(type).get(names.get(key.toLowerCase()) ?? '');
      return field === undefined ? [key, item] : [field.json, fieldWithNames(item, field)];
    }),
  );
}
