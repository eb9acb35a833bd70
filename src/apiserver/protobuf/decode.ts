/**
 * Decodes objects that clients send in protobuf into their JSON values. kubectl's create commands have sent protobuf since v1.32.
 *
 * Boundary: decoding uses only the facts about the types. Unknown fields are ignored, and values are validated
 * later.
 * Source: runtime.Unknown of k8s.io/apimachinery, "Alternate representations of resources" of v1.33.
 */
import protobuf from 'protobufjs/minimal.js';
import { type FieldFacts, type JsonForm, jsonForms, perType, type Scalar, typeFacts } from '../../api/facts/facts.ts';
import { MAX_VALUES } from '../../api/schema.ts';
import { type JsonObject, type JsonValue, setOwn } from '../../machinery/json-value.ts';
import { entityTooLarge } from '../../machinery/status.ts';
import { formatDuration } from '../../machinery/time.ts';
import { MAGIC } from './envelope.ts';
import { type Instant, microTimeText, timeText } from './times.ts';

const { Reader } = protobuf;
type Reader = protobuf.Reader;
type Json = Record<string, unknown>;

const LENGTH_DELIMITED = 2;
/** Scalars of which a list can be encoded as one value of the wire type LENGTH_DELIMITED. */
const PACKABLE: ReadonlySet<Scalar | undefined> = new Set<Scalar>(['bool', 'int32', 'int64', 'double']);

/** The fields of a message, by field number. */
type Message = ReadonlyMap<number, FieldFacts>;

/** Throws an Error if there are no facts about the type. */
const messageOf = perType((type): Message => {
  const facts = typeFacts(type);
  if (facts === undefined) throw new Error(`there are no facts about the type ${type}`);
  const fields = facts.items === undefined ? facts.fields : [facts.items];
  return new Map(fields.filter(({ number }) => number !== 0).map((field) => [field.number, field]));
});

/** The number of messages, list elements and map entries that have been read so far from a body. */
interface Count {
  values: number;
}

const sub = (reader: Reader): Reader => new Reader(reader.bytes());
const integer = (reader: Reader): number => {
  // The value is a number if no package for 64-bit integers is loaded.
  const value: unknown = reader.int64();
  return typeof value === 'number' ? value : (value as { toNumber(): number }).toNumber();
};

/** Reads a message whose known fields are only integers and strings, and returns their values by field number. */
function plain(reader: Reader, count: Count = { values: 0 }): Map<number, number | string> {
  const values = new Map<number, number | string>();
  while (reader.pos < reader.len) {
    add(count);
    const tag = reader.uint32();
    if ((tag & 7) === LENGTH_DELIMITED) values.set(tag >>> 3, reader.string());
    else if ((tag & 7) === 0) values.set(tag >>> 3, integer(reader));
    else reader.skipType(tag & 7);
  }
  return values;
}

function time(reader: Reader, format: (instant: Instant) => string): string | undefined {
  const values = plain(sub(reader));
  // Go encodes its zero time, which means that there is no time, as an empty message.
  if (values.size === 0) return undefined;
  return format({ seconds: Number(values.get(1) ?? 0), nanos: Number(values.get(2) ?? 0) });
}

function readScalar(reader: Reader, scalar: Scalar): unknown {
  switch (scalar) {
    case 'string':
      return reader.string();
    case 'bool':
      return reader.bool();
    case 'double':
      return reader.double();
    case 'bytes':
      return Buffer.from(reader.bytes()).toString('base64');
    case 'int32':
    case 'int64':
      return integer(reader);
    case 'any':
      throw new Error('protobuf cannot encode any value');
  }
}

function readForm(reader: Reader, form: JsonForm): unknown {
  switch (form) {
    case 'time':
      return time(reader, timeText);
    case 'microTime':
      return time(reader, microTimeText);
    case 'duration':
      return formatDuration(Number(plain(sub(reader)).get(1) ?? 0) / 1_000_000);
    case 'quantity':
      return plain(sub(reader)).get(1) ?? '0';
    case 'intOrString': {
      const values = plain(sub(reader));
      return values.get(1) === 1 ? (values.get(3) ?? '') : (values.get(2) ?? 0);
    }
    case 'raw':
      return JSON.parse(String(plain(sub(reader)).get(1) ?? 'null'));
  }
}

/** Reads a value of the field's type: the value of the field, or an element of its list or map. */
function readValue(reader: Reader, { ref, scalar = 'any' }: FieldFacts, count: Count): unknown {
  if (ref === undefined) return readScalar(reader, scalar);
  const form = jsonForms.get(ref);
  if (form !== undefined) return readForm(reader, form);
  const message = readMessage(sub(reader), messageOf(ref), {}, count);
  const items = typeFacts(ref)?.items;
  return items === undefined ? message : (message[items.json] ?? []);
}

const EMPTY = new Uint8Array([0]);

function readEntry(reader: Reader, field: FieldFacts, count: Count): [string, unknown] {
  let key = '';
  let content: unknown;
  let found = false;
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag >>> 3 === 1) key = reader.string();
    else if (tag >>> 3 === 2) {
      content = readValue(reader, field, count);
      found = true;
    } else reader.skipType(tag & 7);
  }
  // A missing value is an empty one.
  return [key, found ? content : readValue(new Reader(EMPTY), field, count)];
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

function readList(reader: Reader, wireType: number, field: FieldFacts, list: unknown[], count: Count): void {
  const append = (from: Reader): void => {
    add(count);
    list.push(readValue(from, field, count));
  };
  if (wireType !== LENGTH_DELIMITED || !PACKABLE.has(field.scalar)) append(reader);
  else for (const elements = sub(reader); elements.pos < elements.len; ) append(elements);
}

function readField(reader: Reader, wireType: number, field: FieldFacts, into: Json, count: Count): void {
  const { json, container, ref, omitempty, pointer } = field;
  if (container === 'list') {
    into[json] ??= [];
    readList(reader, wireType, field, into[json] as unknown[], count);
    return;
  }
  if (container === 'map') {
    add(count);
    const [key, content] = readEntry(sub(reader), field, count);
    into[json] ??= {};
    setOwn(into[json] as JsonObject, key, content as JsonValue);
    return;
  }
  if (ref !== undefined) add(count);
  const content = readValue(reader, field, count);
  // Go encodes empty values in protobuf even if it omits them in JSON, so this decoder omits them too.
  if (content === undefined || (omitempty && !pointer && isZero(content))) return;
  into[json] = content;
}

function readMessage(reader: Reader, message: Message, into: Json, count: Count): Json {
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    const field = message.get(tag >>> 3);
    if (field === undefined) reader.skipType(tag & 7);
    else if (field.inline) readMessage(sub(reader), messageOf(field.ref ?? ''), into, count);
    else readField(reader, tag & 7, field, into, count);
  }
  return into;
}

/**
 * Decodes the object in the body, including its apiVersion and kind. `typeOf` returns the full name of the kind's type, or undefined
 * if the kind is not expected; the result then has only the apiVersion and the kind. Throws an Error if the body is not a valid
 * encoding, and 413 RequestEntityTooLarge if the object has too many values.
 */
export function decodeProtobuf(
  body: Uint8Array,
  typeOf: (apiVersion: string, kind: string) => string | undefined,
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
  const type = typeOf(apiVersion, kind);
  // The caller refuses an object of an unexpected kind, so the fields of the object are not needed.
  if (type === undefined) return { apiVersion, kind };
  return readMessage(new Reader(raw), messageOf(type), { apiVersion, kind }, { values: 0 });
}
