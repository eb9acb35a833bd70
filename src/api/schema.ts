/**
 * Decodes JSON from clients according to the facts about the types, with the same results and errors as upstream's Go decoder.
 *
 * Boundary: decoding checks only the shapes of values; the validation of the kinds checks the values.
 * Invariants of the decoded value:
 *  1. Every field is a field of its type and has the right shape. There are no nulls and no unknown fields, except in raw values.
 *  2. Times are in UTC, quantities canonical, bytes in padded base64.
 *  3. Fields that Go writes even if they are empty are present: '', 0, false, [] or {}. Times and fields that are pointers in Go may be
 *     absent.
 *  4. The value shares nothing with the input except raw values, such as fieldsV1 in managedFields and the data of ControllerRevisions.
 *
 * Each type is compiled to a function when it is first decoded. Source: encoding/json and sigs.k8s.io/json (wording).
 */
import { MAX_LISTED_ERRORS } from '../machinery/field-error.ts';
import { isJsonObject, type JsonObject, type JsonValue, setOwn } from '../machinery/json-value.ts';
import { entityTooLarge } from '../machinery/status.ts';
import { type FieldFacts, type JsonForm, jsonFields, jsonForms, perType, typeFacts } from './facts/facts.ts';
import {
  canonicalAmount,
  canonicalBytes,
  canonicalDuration,
  canonicalMicroTime,
  canonicalQuantityValue,
  canonicalTime,
  type ScalarResult,
} from './scalars.ts';

export interface Decoded {
  value: JsonObject;
  /** Such as spec.containers[0].foo, in the order of the document. */
  unknownFields: string[];
  /** At most two errors: the first error that aborts Go's decoder, then the first other error. Upstream reports only the first of them. */
  typeErrors: string[];
  /** The value of the error that aborts Go's decoder, whose text names no field. Absent if there is no such error. */
  unnamed?: PlacedValue;
}

/** A value and its path, such as spec.containers[0].resources.limits[memory]. */
export interface PlacedValue {
  path: string;
  value: unknown;
}

interface Context {
  /** The field names and list indexes from the root to the current value. */
  path: (string | number)[];
  unknownFields: string[];
  /** Errors that abort Go's decoder immediately and take precedence over type mismatches. */
  fatal: string[];
  /** The value of the fatal error, and the path to the value. `key`: the key of a map entry. */
  fatalPlace?: { path: (string | number | { key: string })[]; value: unknown };
  mismatches: string[];
  values: number;
}

/**
 * Limits the fields, list elements and map entries of an object, because each needs far more memory when it is decoded than in the body.
 */
export const MAX_VALUES = 300_000;

/** Decodes a value that is not null; undefined if the value is invalid. The context keeps the first fatal error and the first mismatch. */
type Decoder = (value: unknown, context: Context) => JsonValue | undefined;

/** For error texts: the Go struct whose field is decoded, and the Go type of the field. */
interface Place {
  struct: string;
  goType: string;
}

const kindOf = (value: unknown): string => {
  if (Array.isArray(value)) return 'array';
  return typeof value === 'boolean' ? 'bool' : typeof value;
};

function mismatch(context: Context, value: unknown, { struct, goType }: Place): undefined {
  if (context.mismatches.length > 0) return undefined;
  const field = context.path.filter((part) => typeof part === 'string').join('.');
  const target = field === '' ? 'value' : `struct field ${struct}.${field}`;
  const shown = typeof value === 'number' && /^u?int/.test(goType) ? `number ${value}` : kindOf(value);
  context.mismatches.push(`json: cannot unmarshal ${shown} into Go ${target} of type ${goType}`);
  return undefined;
}

function noteFatal(context: Context, text: string, value: unknown): void {
  if (context.fatal.length > 0) return;
  context.fatal.push(text);
  context.fatalPlace = { path: [...context.path], value };
}

const pathText = (path: readonly (string | number | { key: string })[]): string => {
  let text = '';
  for (const part of path) {
    if (typeof part === 'string') text += text === '' ? part : `.${part}`;
    else text += `[${typeof part === 'number' ? part : part.key}]`;
  }
  return text;
};

const stringDecoder =
  (place: Place): Decoder =>
  (value, context) =>
    typeof value === 'string' ? value : mismatch(context, value, place);

const booleanDecoder =
  (place: Place): Decoder =>
  (value, context) =>
    typeof value === 'boolean' ? value : mismatch(context, value, place);

const numberDecoder =
  (place: Place): Decoder =>
  (value, context) =>
    typeof value === 'number' ? value : mismatch(context, value, place);

function integerDecoder(place: Place, scalar: 'int32' | 'int64'): Decoder {
  const limit = scalar === 'int32' ? 2 ** 31 : 2 ** 63;
  // JavaScript writes -2^63 as a number that Go cannot read. Integers beyond 2^53 are not exact here.
  const lowest = scalar === 'int32' ? -limit : -limit + 1024;
  return (value, context) =>
    typeof value === 'number' && Number.isInteger(value) && value >= lowest && value < limit
      ? value
      : mismatch(context, value, place);
}

/** Returns a decoder for a type that has a custom decoder in Go. The errors of such types do not name the field, and abort Go's decoder. */
const ownDecoder =
  (canonical: (text: string) => ScalarResult, goType: string): Decoder =>
  (value, context) => {
    if (typeof value !== 'string') {
      noteFatal(context, `json: cannot unmarshal ${kindOf(value)} into Go value of type ${goType}`, value);
      return undefined;
    }
    const result = canonical(value);
    if ('value' in result) return result.value;
    noteFatal(context, result.error, value);
    return undefined;
  };

const quantityDecoder =
  (canonical: (input: string | number) => ScalarResult): Decoder =>
  (value, context) => {
    // Upstream parses the JSON text of a value of another type, which always fails. Parsing the name of its type, as here, fails, too.
    const result = canonical(typeof value === 'string' || typeof value === 'number' ? value : kindOf(value));
    if ('value' in result) return result.value;
    noteFatal(context, result.error, value);
    return undefined;
  };

const intOrStringDecoder: Decoder = (value, context) => {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' && Number.isInteger(value) && Math.abs(value) < 2 ** 31) return value;
  const shown = typeof value === 'number' ? `number ${value}` : kindOf(value);
  noteFatal(context, `json: cannot unmarshal ${shown} into Go value of type int32`, value);
  return undefined;
};

const rawDecoder: Decoder = (value) => value as JsonValue;

function bytesDecoder(place: Place): Decoder {
  const own = ownDecoder(canonicalBytes, place.goType);
  return (value, context) => (typeof value === 'string' ? own(value, context) : mismatch(context, value, place));
}

function listDecoder(field: FieldFacts, inner: Decoder, place: Place): Decoder {
  return (value, context) => {
    if (!Array.isArray(value)) return mismatch(context, value, place);
    // A copy has no more room than the list needs, unlike a list to which elements are added. The watch cache keeps the result.
    const result: JsonValue[] = value.slice();
    let kept = 0;
    value.forEach((item, index) => {
      count(context);
      context.path.push(index);
      const decoded = item === null ? zeroOf(field) : inner(item, context);
      if (decoded !== undefined) result[kept++] = decoded;
      context.path.pop();
    });
    result.length = kept;
    return result;
  };
}

function mapDecoder(field: FieldFacts, inner: Decoder, place: Place): Decoder {
  return (value, context) => {
    if (!isJsonObject(value)) return mismatch(context, value, place);
    const result: JsonObject = {};
    for (const key of Object.keys(value)) {
      const item = value[key] as JsonValue;
      count(context);
      const fatals = context.fatal.length;
      const decoded = item === null ? zeroOf(field) : inner(item, context);
      if (decoded !== undefined) setOwn(result, key, decoded);
      // The context's path has no keys, because Go's errors about fields have none.
      if (context.fatal.length > fatals) context.fatalPlace?.path.splice(context.path.length, 0, { key });
    }
    return result;
  };
}

/**
 * Go's zero value of the field's type, which replaces null in a list or map, and a missing value that Go does not omit. Undefined for
 * values that are omitted instead, such as times.
 */
function zeroOf(field: FieldFacts): JsonValue | undefined {
  const { ref = '', scalar } = field;
  const form = jsonForms.get(ref);
  if (ref !== '' && form === undefined)
    return typeFacts(ref)?.items === undefined ? structDecoder(ref)({}, newContext()) : [];
  switch (form ?? scalar) {
    case 'string':
    case 'bytes':
      return '';
    case 'int32':
    case 'int64':
    case 'double':
    case 'intOrString':
      return 0;
    case 'bool':
      return false;
    case 'quantity':
      return '0';
    case 'duration':
      return '0s';
    default:
      return undefined;
  }
}

function elementGoType({ ref, scalar, goName }: FieldFacts): string {
  const items = typeFacts(ref ?? '')?.items;
  if (items !== undefined) return goTypeOf(items);
  if (ref !== undefined) return jsonForms.get(ref) ?? goTypeName(ref);
  if (goName !== undefined) return goName;
  switch (scalar) {
    case 'double':
      return 'float64';
    case 'bytes':
      return '[]uint8';
    default:
      return scalar ?? '';
  }
}

function goTypeOf(field: FieldFacts): string {
  if (isResourceList(field)) return 'v1.ResourceList';
  const { container } = field;
  return `${container === 'list' ? '[]' : container === 'map' ? 'map[string]' : ''}${elementGoType(field)}`;
}

/** The name of a type in errors, such as v1.Pod. */
const goTypeName = (type: string): string => type.split('.').slice(-2).join('.');

function formDecoder(form: JsonForm): Decoder {
  switch (form) {
    case 'time':
      return ownDecoder(canonicalTime, 'string');
    case 'microTime':
      return ownDecoder(canonicalMicroTime, 'string');
    case 'duration':
      return ownDecoder(canonicalDuration, 'string');
    case 'quantity':
      return quantityDecoder(canonicalQuantityValue);
    case 'intOrString':
      return intOrStringDecoder;
    case 'raw':
      return rawDecoder;
  }
}

function elementDecoder(field: FieldFacts, struct: string): Decoder {
  const { ref, scalar = 'any' } = field;
  const place: Place = { struct, goType: elementGoType(field) };
  if (ref !== undefined) {
    const form = jsonForms.get(ref);
    if (form !== undefined) return formDecoder(form);
    const items = typeFacts(ref)?.items;
    if (items !== undefined) return fieldDecoder(items, struct);
    let inner: Decoder | undefined;
    return (value, context) => {
      if (!isJsonObject(value)) return mismatch(context, value, place);
      // The type is compiled when it is first used, because types can be recursive.
      inner ??= structDecoder(ref);
      return inner(value, context);
    };
  }
  switch (scalar) {
    case 'string':
      return stringDecoder(place);
    case 'int32':
    case 'int64':
      return integerDecoder(place, scalar);
    case 'double':
      return numberDecoder(place);
    case 'bool':
      return booleanDecoder(place);
    case 'bytes':
      return bytesDecoder(place);
    case 'any':
      return rawDecoder;
  }
}

const isResourceList = ({ container, ref = '' }: FieldFacts): boolean =>
  container === 'map' && jsonForms.get(ref) === 'quantity';

function fieldDecoder(field: FieldFacts, struct: string): Decoder {
  const element = isResourceList(field) ? quantityDecoder(canonicalAmount) : elementDecoder(field, struct);
  const place: Place = { struct, goType: goTypeOf(field) };
  if (field.container === 'list') return listDecoder(field, element, place);
  return field.container === 'map' ? mapDecoder(field, element, place) : element;
}

/** Returns the value of a field that the client omits although Go always writes it; undefined if the field may be absent. */
function writtenValue(field: FieldFacts): JsonValue | undefined {
  if (field.container === 'list') return [];
  return field.container === 'map' ? {} : zeroOf(field);
}

const structDecoder = perType((type: string): Decoder => {
  const struct = type.slice(type.lastIndexOf('.') + 1);
  const facts = jsonFields(type);
  const fields = new Map([...facts].map(([name, field]) => [name, fieldDecoder(field, struct)]));
  const written = [...facts.values()].filter(({ omitempty, pointer }) => !omitempty && !pointer);
  return (value, context) => {
    const result: JsonObject = {};
    for (const name of Object.keys(value as JsonObject)) {
      const item = (value as JsonObject)[name];
      const field = fields.get(name);
      if (field === undefined) {
        if (context.unknownFields.length < MAX_LISTED_ERRORS)
          context.unknownFields.push(pathText([...context.path, name]));
      } else if (item !== null && item !== undefined) {
        count(context);
        context.path.push(name);
        const decoded = field(item, context);
        if (decoded !== undefined) result[name] = decoded;
        context.path.pop();
      }
    }
    for (const field of written) {
      if (result[field.json] !== undefined) continue;
      const zero = writtenValue(field);
      if (zero !== undefined) result[field.json] = zero;
    }
    return result;
  };
});

const newContext = (): Context => ({ path: [], unknownFields: [], fatal: [], mismatches: [], values: 0 });

/** Throws 413 if the object has too many values. */
function count(context: Context): void {
  context.values += 1;
  if (context.values > MAX_VALUES) throw entityTooLarge(`the object has more than ${MAX_VALUES} values`);
}

/**
 * Decodes the value as the type with the full name. Throws Error if there are no facts about the type, and ApiError (413) if the object has
 * more than MAX_VALUES values.
 */
export function decode(typeName: string, value: unknown): Decoded {
  const decoder = structDecoder(typeName);
  if (!isJsonObject(value)) {
    const goType = goTypeName(typeName);
    return {
      value: {},
      unknownFields: [],
      typeErrors: [`json: cannot unmarshal ${kindOf(value)} into Go value of type ${goType}`],
    };
  }
  const context = newContext();
  const decoded = decoder(value, context) as JsonObject;
  const { unknownFields, fatal, fatalPlace, mismatches } = context;
  return {
    value: decoded,
    unknownFields,
    typeErrors: [...fatal, ...mismatches],
    ...(fatalPlace === undefined ? {} : { unnamed: { path: pathText(fatalPlace.path), value: fatalPlace.value } }),
  };
}

/** Go's error if apiVersion or kind is not a string; undefined if each is a string, null or absent. */
export function typeMetaError(object: Readonly<Record<string, unknown>>): string | undefined {
  const key = ['apiVersion', 'kind'].find((each) => typeof (object[each] ?? '') !== 'string');
  if (key === undefined) return undefined;
  return `json: cannot unmarshal ${kindOf(object[key])} into Go struct field .${key} of type string`;
}

/**
 * Go's error if the name or the namespace is not a string; undefined if each is a string, null or absent. This is checked separately,
 * because both are compared with the URL path before the object is decoded.
 */
export function placeError({ metadata }: Readonly<Record<string, unknown>>): string | undefined {
  if (!isJsonObject(metadata)) return undefined;
  const key = ['name', 'namespace'].find((each) => typeof (metadata[each] ?? '') !== 'string');
  if (key === undefined) return undefined;
  return `json: cannot unmarshal ${kindOf(metadata[key])} into Go struct field ObjectMeta.metadata.${key} of type string`;
}

export const unknownFieldText = (path: string): string => `unknown field ${JSON.stringify(path)}`;
