/**
 * Decodes JSON from clients according to the generated field table, with the same results and errors as upstream's Go decoder.
 *
 * Boundary: decoding checks only the shapes of values; the validation of the kinds checks the values.
 * Invariants of the decoded value:
 * 1. Every field is a field of its type and has the right shape. There are no nulls and no unknown fields, except in `any` values.
 * 2. Times are in UTC, quantities canonical, bytes in padded base64.
 * 3. Fields that Go writes even if they are empty (required in the schema) are present: '', 0, false, [] or {}. Times may be absent.
 * 4. The value shares nothing with the input except values of shape `any` (the fields in managedFields).
 *
 * Each type is compiled to a function when it is first decoded. Source: encoding/json and sigs.k8s.io/json (wording).
 */
import { MAX_LISTED_ERRORS } from '../machinery/field-error.ts';
import { isJsonObject, type JsonObject, type JsonValue, setOwn } from '../machinery/json-value.ts';
import { type ApiError, badRequest, entityTooLarge } from '../machinery/status.ts';
import table from './generated/schema.json' with { type: 'json' };
import { goTypeName, int64Fields, namedStrings } from './go-types.ts';
import {
  canonicalBytes,
  canonicalMicroTime,
  canonicalQuantityValue,
  canonicalTime,
  type ScalarResult,
} from './scalars.ts';

export type Shape =
  | 'string'
  | 'integer'
  | 'number'
  | 'boolean'
  | 'time'
  | 'microtime'
  | 'bytes'
  | 'quantity'
  | 'intOrString'
  | 'any'
  | { ref: string }
  | { array: Shape }
  | { map: Shape };

export interface FieldSchema {
  shape: Shape;
  required?: boolean;
  /** Whether the field is decoded only so that validation can reject it by name. The OpenAPI documents omit such fields. */
  unlisted?: boolean;
}

/** The fields of each type, by the type's name and the field's JSON name. */
export const schemaTypes = table as unknown as Readonly<Record<string, Readonly<Record<string, FieldSchema>>>>;

export interface Decoded {
  value: JsonObject;
  /** The paths of unknown fields, such as spec.containers[0].foo, in the order of the document. */
  unknownFields: string[];
  /** At most two errors: the first error that aborts Go's decoder, then the first other error. Upstream reports only the first of them. */
  typeErrors: string[];
}

interface Context {
  /** The field names and list indexes from the root to the current value. */
  path: (string | number)[];
  unknownFields: string[];
  /** Errors that abort Go's decoder immediately and take precedence over type mismatches. */
  fatal: string[];
  mismatches: string[];
  /** The number of decoded fields, list elements and map entries. */
  values: number;
}

/** The maximum number of fields, list elements and map entries of an object. Each needs far more memory decoded than in the body. */
export const MAX_VALUES = 300_000;

/** Decodes a value that is not null. Returns undefined if the value is invalid. The context keeps the first error of each type. */
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

function noteFatal(context: Context, text: string): void {
  if (context.fatal.length === 0) context.fatal.push(text);
}

const pathText = (path: readonly (string | number)[], name: string): string => {
  let text = '';
  for (const part of [...path, name]) {
    if (typeof part === 'number') text += `[${part}]`;
    else text += text === '' ? part : `.${part}`;
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

function integerDecoder(place: Place): Decoder {
  const limit = place.goType === 'int32' ? 2 ** 31 : 2 ** 63;
  return (value, context) =>
    typeof value === 'number' && Number.isInteger(value) && value >= -limit && value < limit
      ? value
      : mismatch(context, value, place);
}

/** A decoder for types that have a custom decoder in Go. The errors of such types do not name the field, and abort Go's decoder. */
const ownDecoder =
  (canonical: (text: string) => ScalarResult, goType: string): Decoder =>
  (value, context) => {
    if (typeof value !== 'string') {
      noteFatal(context, `json: cannot unmarshal ${kindOf(value)} into Go value of type ${goType}`);
      return undefined;
    }
    const result = canonical(value);
    if ('value' in result) return result.value;
    noteFatal(context, result.error);
    return undefined;
  };

const quantityDecoder: Decoder = (value, context) => {
  // Upstream parses the JSON text of a value of another type as a quantity too, which always fails. So does the name of its type here.
  const result = canonicalQuantityValue(typeof value === 'string' || typeof value === 'number' ? value : kindOf(value));
  if ('value' in result) return result.value;
  noteFatal(context, result.error);
  return undefined;
};

const intOrStringDecoder: Decoder = (value, context) => {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' && Number.isInteger(value) && Math.abs(value) < 2 ** 31) return value;
  const shown = typeof value === 'number' ? `number ${value}` : kindOf(value);
  noteFatal(context, `json: cannot unmarshal ${shown} into Go value of type int32`);
  return undefined;
};

function bytesDecoder(place: Place): Decoder {
  const own = ownDecoder(canonicalBytes, place.goType);
  return (value, context) => (typeof value === 'string' ? own(value, context) : mismatch(context, value, place));
}

function arrayDecoder(element: Shape, inner: Decoder, place: Place): Decoder {
  return (value, context) => {
    if (!Array.isArray(value)) return mismatch(context, value, place);
    const result: JsonValue[] = [];
    value.forEach((item, index) => {
      count(context);
      context.path.push(index);
      const decoded = item === null ? zeroOf(element) : inner(item, context);
      if (decoded !== undefined) result.push(decoded);
      context.path.pop();
    });
    return result;
  };
}

function mapDecoder(element: Shape, inner: Decoder, place: Place): Decoder {
  return (value, context) => {
    if (!isJsonObject(value)) return mismatch(context, value, place);
    const result: JsonObject = {};
    for (const [key, item] of Object.entries(value)) {
      count(context);
      const decoded = item === null ? zeroOf(element) : inner(item, context);
      if (decoded !== undefined) setOwn(result, key, decoded);
    }
    return result;
  };
}

/** Go's zero value, which replaces null in a list or map, and a missing required field. Undefined for times, which are omitted instead. */
function zeroOf(shape: Shape): JsonValue | undefined {
  if (typeof shape === 'object') {
    if ('array' in shape) return [];
    if ('map' in shape) return {};
    return structDecoder(shape.ref)({}, newContext());
  }
  switch (shape) {
    case 'string':
    case 'bytes':
      return '';
    case 'integer':
    case 'number':
    case 'intOrString':
      return 0;
    case 'boolean':
      return false;
    case 'quantity':
      return '0';
    default:
      return undefined;
  }
}

function goTypeOf(shape: Shape, key: string): string {
  if (typeof shape === 'object') {
    if ('array' in shape) return `[]${goTypeOf(shape.array, key)}`;
    if ('map' in shape) return shape.map === 'quantity' ? 'v1.ResourceList' : `map[string]${goTypeOf(shape.map, key)}`;
    return goTypeName(shape.ref);
  }
  switch (shape) {
    case 'string':
      return namedStrings[key] ?? 'string';
    case 'integer':
      return int64Fields.has(key) ? 'int64' : 'int32';
    case 'number':
      return 'float64';
    case 'boolean':
      return 'bool';
    case 'bytes':
      return '[]uint8';
    default:
      return shape;
  }
}

function decoderOf(shape: Shape, struct: string, key: string): Decoder {
  const place: Place = { struct, goType: goTypeOf(shape, key) };
  if (typeof shape === 'object') {
    if ('array' in shape) return arrayDecoder(shape.array, decoderOf(shape.array, struct, key), place);
    if ('map' in shape) return mapDecoder(shape.map, decoderOf(shape.map, struct, key), place);
    const { ref } = shape;
    let inner: Decoder | undefined;
    return (value, context) => {
      if (!isJsonObject(value)) return mismatch(context, value, place);
      // The type is compiled when it is first used, because types can be recursive.
      inner ??= structDecoder(ref);
      return inner(value, context);
    };
  }
  switch (shape) {
    case 'string':
      return stringDecoder(place);
    case 'integer':
      return integerDecoder(place);
    case 'number':
      return numberDecoder(place);
    case 'boolean':
      return booleanDecoder(place);
    case 'time':
      return ownDecoder(canonicalTime, 'string');
    case 'microtime':
      return ownDecoder(canonicalMicroTime, 'string');
    case 'bytes':
      return bytesDecoder(place);
    case 'quantity':
      return quantityDecoder;
    case 'intOrString':
      return intOrStringDecoder;
    case 'any':
      return (value) => value as JsonValue;
  }
}

const compiled = new Map<string, Decoder>();

function structDecoder(typeName: string): Decoder {
  const existing = compiled.get(typeName);
  if (existing !== undefined) return existing;
  const type = schemaTypes[typeName];
  if (type === undefined) throw new Error(`type ${typeName} is not in the field table`);
  const struct = goTypeName(typeName).slice('v1.'.length);
  const fields = new Map<string, Decoder>();
  const required: [string, Shape][] = [];
  for (const [name, field] of Object.entries(type)) {
    fields.set(name, decoderOf(field.shape, struct, `${typeName}.${name}`));
    if (field.required) required.push([name, field.shape]);
  }
  const decoder: Decoder = (value, context) => {
    const result: JsonObject = {};
    for (const [name, item] of Object.entries(value as JsonObject)) {
      const field = fields.get(name);
      if (field === undefined) {
        if (context.unknownFields.length < MAX_LISTED_ERRORS) context.unknownFields.push(pathText(context.path, name));
      } else if (item !== null && item !== undefined) {
        count(context);
        context.path.push(name);
        const decoded = field(item, context);
        if (decoded !== undefined) result[name] = decoded;
        context.path.pop();
      }
    }
    for (const [name, shape] of required) {
      if (result[name] !== undefined) continue;
      const zero = zeroOf(shape);
      if (zero !== undefined) result[name] = zero;
    }
    return result;
  };
  compiled.set(typeName, decoder);
  return decoder;
}

const newContext = (): Context => ({ path: [], unknownFields: [], fatal: [], mismatches: [], values: 0 });

/** Counts a value. Throws 413 RequestEntityTooLarge if the object has too many values. */
function count(context: Context): void {
  context.values += 1;
  if (context.values > MAX_VALUES) throw entityTooLarge(`the object has more than ${MAX_VALUES} values`);
}

/**
 * Decodes the value as the type. Throws Error if the field table does not contain the type, and ApiError (413) if the object has more
 * than MAX_VALUES values.
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
  return {
    value: decoded,
    unknownFields: context.unknownFields,
    typeErrors: [...context.fatal, ...context.mismatches],
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

/** `unknown field "spec.foo"`: the text of warnings and of strict decoding errors. */
export const unknownFieldText = (path: string): string => `unknown field ${JSON.stringify(path)}`;

/**
 * The error response for a body with a value of the wrong type or, if `strict` is set, with unknown fields. Returns undefined if the
 * body is valid.
 */
export function decodeFailure(
  kind: { version: string; kind: string },
  decoded: Decoded,
  strict: boolean,
): ApiError | undefined {
  const start = `${kind.kind} in version "${kind.version}" cannot be handled as a ${kind.kind}`;
  const [first] = decoded.typeErrors;
  if (first !== undefined) return badRequest(`${start}: ${first}`);
  if (!strict || decoded.unknownFields.length === 0) return undefined;
  return badRequest(
    `${start}: strict decoding error: ${decoded.unknownFields.map((path) => unknownFieldText(path)).join(', ')}`,
  );
}
