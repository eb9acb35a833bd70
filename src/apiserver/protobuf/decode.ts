/**
 * Decodes objects that clients send in protobuf into their JSON values. kubectl's create commands have sent protobuf since v1.32.
 * Objects in responses are always JSON, which every client accepts.
 *
 * Boundary: decoding uses only the shapes and the numbers of the fields. Unknown fields are ignored, and values are validated
 * later.
 * Source: runtime.Unknown of k8s.io/apimachinery, "Alternate representations of resources" of v1.33.
 */
import protobuf from 'protobufjs/minimal.js';
import { type FieldSchema, MAX_VALUES, type Shape, schemaTypes } from '../../api/schema.ts';
import { type JsonObject, type JsonValue, setOwn } from '../../machinery/json-value.ts';
import { entityTooLarge } from '../../machinery/status.ts';
import { formatMicroTime, formatTime } from '../../machinery/time.ts';
import { protobufFields } from './fields.ts';

const { Reader } = protobuf;
type Reader = protobuf.Reader;
type Json = Record<string, unknown>;

/** The first four bytes of every protobuf body: k8s and a zero byte. */
const MAGIC = [0x6b, 0x38, 0x73, 0];
const LENGTH_DELIMITED = 2;

interface Field {
  name: string;
  schema: FieldSchema;
  /**
   * Whether the field is a pointer in Go. If so, a zero value in the message is a value; otherwise it means that the field is
   * absent.
   */
  pointer: boolean;
}

/**
 * The fields of a message, by field number. A nested Message is a Go struct that is embedded in the type: in JSON, its fields
 * belong to the type itself.
 */
type Message = Map<number, Field | Message>;

const messages = new Map<string, Message>();

function messageOf(type: string): Message {
  const known = messages.get(type);
  if (known !== undefined) return known;
  const message: Message = new Map();
  messages.set(type, message);
  const words = (protobufFields[type] ?? '').split(' ');
  for (let at = 0; at + 1 < words.length; at += 2) {
    const name = words[at] ?? '';
    const number = words[at + 1] ?? '';
    const schema = schemaTypes[type]?.[name];
    if (schema === undefined) continue;
    const [outer, inner] = number.replace('?', '').split('.').map(Number);
    const field = { name, schema, pointer: number.endsWith('?') };
    if (inner === undefined) message.set(outer ?? 0, field);
    else embedded(message, outer ?? 0).set(inner, field);
  }
  return message;
}

/** Returns the embedded message with the field number. Adds an empty message if there is none. */
function embedded(message: Message, number: number): Message {
  const inner = message.get(number);
  if (inner instanceof Map) return inner;
  const made: Message = new Map();
  message.set(number, made);
  return made;
}

/** The number of messages, list elements and map entries that have been read so far from a body. */
interface Count {
  values: number;
}

const sub = (reader: Reader): Reader => new Reader(reader.bytes());
const integer = (reader: Reader): number => Number(reader.int64().toString());

/** Reads a message whose known fields are only integers and strings, and returns their values by field number. */
function plain(reader: Reader): Map<number, number | string> {
  const values = new Map<number, number | string>();
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if ((tag & 7) === LENGTH_DELIMITED) values.set(tag >>> 3, reader.string());
    else if ((tag & 7) === 0) values.set(tag >>> 3, integer(reader));
    else reader.skipType(tag & 7);
  }
  return values;
}

function time(reader: Reader, format: (millis: number) => string): string | undefined {
  const values = plain(sub(reader));
  // Go encodes its zero time, which means that there is no time, as an empty message.
  if (values.size === 0) return undefined;
  return format(Number(values.get(1) ?? 0) * 1000 + Math.floor(Number(values.get(2) ?? 0) / 1_000_000));
}

function scalar(reader: Reader, shape: string): unknown {
  switch (shape) {
    case 'integer':
      return integer(reader);
    case 'boolean':
      return reader.bool();
    case 'number':
      return reader.double();
    case 'bytes':
      return Buffer.from(reader.bytes()).toString('base64');
    case 'time':
      return time(reader, formatTime);
    case 'microtime':
      return time(reader, formatMicroTime);
    case 'quantity':
      return plain(sub(reader)).get(1) ?? '0';
    case 'intOrString': {
      const values = plain(sub(reader));
      return values.get(1) === 1 ? (values.get(3) ?? '') : (values.get(2) ?? 0);
    }
    case 'any':
      return JSON.parse(String(plain(sub(reader)).get(1) ?? 'null'));
    default:
      return reader.string();
  }
}

function value(reader: Reader, shape: Shape, count: Count): unknown {
  if (typeof shape === 'string') return scalar(reader, shape);
  if ('ref' in shape) return readMessage(sub(reader), messageOf(shape.ref), {}, count);
  throw new Error('protobuf cannot encode a list or map within a list or map');
}

function entry(reader: Reader, shape: Shape, count: Count): [string, unknown] {
  let key = '';
  let content: unknown;
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag >>> 3 === 1) key = reader.string();
    else if (tag >>> 3 === 2) content = value(reader, shape, count);
    else reader.skipType(tag & 7);
  }
  return [key, content ?? (shape === 'string' || shape === 'bytes' ? '' : undefined)];
}

const isZero = (content: unknown): boolean =>
  content === '' ||
  content === 0 ||
  content === false ||
  (typeof content === 'object' && content !== null && Object.keys(content).length === 0);

/**
 * Counts one more value: even a value of two bytes takes much more memory once it is decoded. Throws 413 RequestEntityTooLarge if
 * there are more than MAX_VALUES values.
 */
function add(count: Count): void {
  count.values += 1;
  if (count.values > MAX_VALUES) throw entityTooLarge(`the object has more than ${MAX_VALUES} values`);
}

function readField(reader: Reader, wireType: number, field: Field, into: Json, count: Count): void {
  const { name, schema, pointer } = field;
  const { shape } = schema;
  if (typeof shape === 'object' && 'array' in shape) {
    into[name] ??= [];
    const list = into[name] as unknown[];
    const { array: element } = shape;
    const packed = wireType === LENGTH_DELIMITED && (element === 'integer' || element === 'boolean');
    const append = (from: Reader): void => {
      add(count);
      list.push(value(from, element, count));
    };
    if (!packed) append(reader);
    else for (const elements = sub(reader); elements.pos < elements.len; ) append(elements);
    return;
  }
  if (typeof shape === 'object' && 'map' in shape) {
    add(count);
    const [key, content] = entry(sub(reader), shape.map, count);
    into[name] ??= {};
    setOwn(into[name] as JsonObject, key, content as JsonValue);
    return;
  }
  if (typeof shape === 'object') add(count);
  const content = value(reader, shape, count);
  // Go encodes zero values in protobuf, but omits them in JSON, so this decoder omits them too.
  if (content === undefined || (!pointer && isZero(content))) return;
  into[name] = content;
}

function readMessage(reader: Reader, message: Message, into: Json, count: Count): Json {
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    const field = message.get(tag >>> 3);
    if (field === undefined) reader.skipType(tag & 7);
    else if (field instanceof Map) readMessage(sub(reader), field, into, count);
    else readField(reader, tag & 7, field, into, count);
  }
  return into;
}

/**
 * Decodes the object in the body, including its apiVersion and kind. `schemaOf` returns the name of the kind's type in the field
 * table, or undefined if the kind is not expected; the result then has only the apiVersion and the kind. Throws an Error if the
 * body is not a valid encoding, and 413 RequestEntityTooLarge if the object has too many values.
 */
export function decodeProtobuf(
  body: Uint8Array,
  schemaOf: (apiVersion: string, kind: string) => string | undefined,
): Json {
  if (!MAGIC.every((byte, index) => body[index] === byte))
    throw new Error('the body does not begin with the magic bytes');
  const reader = new Reader(body.subarray(MAGIC.length));
  let typeMeta = new Map<number, number | string>();
  let raw: Uint8Array = new Uint8Array();
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag >>> 3 === 1) typeMeta = plain(sub(reader));
    else if (tag >>> 3 === 2) raw = reader.bytes();
    else reader.skipType(tag & 7);
  }
  const apiVersion = String(typeMeta.get(1) ?? '');
  const kind = String(typeMeta.get(2) ?? '');
  const schema = schemaOf(apiVersion, kind);
  // The caller refuses an object of an unexpected kind, so the fields of the object are not needed.
  if (schema === undefined) return { apiVersion, kind };
  return readMessage(new Reader(raw), messageOf(schema), { apiVersion, kind }, { values: 0 });
}
