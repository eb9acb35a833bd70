/**
 * Decodes objects from protobuf into their JSON values, without validation. kubectl's create commands have sent protobuf since v1.32.
 * Unknown fields are ignored. As in Go, a field that occurs again replaces the earlier scalar, or is merged into the earlier message.
 * Source: runtime.Unknown of k8s.io/apimachinery, "Alternate representations of resources" of v1.33; the code that gogo/protobuf generates
 * (behavior and wording).
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

const VARINT = 0;
const FIXED64 = 1;
const LENGTH_DELIMITED = 2;
/** Lists of these scalars may be packed: one value of the wire type LENGTH_DELIMITED contains all elements. */
const PACKABLE: ReadonlySet<Scalar | undefined> = new Set<Scalar>(['bool', 'int32', 'int64', 'double']);

type Message = ReadonlyMap<number, FieldFacts>;

const messageOf = perType((type): Message => {
  const facts = typeFacts(type);
  if (facts === undefined) throw new Error(`there are no facts about the type ${type}`);
  const fields = facts.items === undefined ? facts.fields : [facts.items];
  return new Map(fields.filter(({ number }) => number !== 0).map((field) => [field.number, field]));
});

/** The number of values that have been read so far, such as messages, list elements and map entries. */
interface Count {
  values: number;
}

const sub = (reader: Reader): Reader => new Reader(reader.bytes());
const integer = (reader: Reader): number => {
  // int64() returns a number if no package for 64-bit integers is loaded, and otherwise an object.
  const value: unknown = reader.int64();
  return typeof value === 'number' ? value : (value as { toNumber(): number }).toNumber();
};

/** `name`: the name of the field in Go. */
const wrongWireType = (wireType: number, name: string): Error =>
  new Error(`proto: wrong wireType = ${wireType} for field ${name}`);

/** The fields of a message that has only integers and strings, by field number: the name in Go and the wire type. */
type Plain = Readonly<Record<number, readonly [name: string, wireType: number]>>;
const TIMESTAMP: Plain = { 1: ['Seconds', VARINT], 2: ['Nanos', VARINT] };
const DURATION: Plain = { 1: ['Duration', VARINT] };
const QUANTITY: Plain = { 1: ['String_', LENGTH_DELIMITED] };
const INT_OR_STRING: Plain = { 1: ['Type', VARINT], 2: ['IntVal', VARINT], 3: ['StrVal', LENGTH_DELIMITED] };
const RAW: Plain = { 1: ['Raw', LENGTH_DELIMITED] };
const TYPE_META: Plain = { 1: ['APIVersion', LENGTH_DELIMITED], 2: ['Kind', LENGTH_DELIMITED] };
const UNKNOWN: Plain = {
  1: ['TypeMeta', LENGTH_DELIMITED],
  2: ['Raw', LENGTH_DELIMITED],
  3: ['ContentEncoding', LENGTH_DELIMITED],
  4: ['ContentType', LENGTH_DELIMITED],
};

type PlainValues = Map<number, number | string>;

/**
 * Reads the fields of the message into `values`, by field number, and returns `values`. A field that occurs again replaces the earlier
 * value.
 */
function plain(reader: Reader, fields: Plain, values: PlainValues = new Map()): PlainValues {
  const count: Count = { values: 0 };
  while (reader.pos < reader.len) {
    add(count);
    const tag = reader.uint32();
    const field = fields[tag >>> 3];
    if (field === undefined) {
      reader.skipType(tag & 7);
      continue;
    }
    const [name, wireType] = field;
    if ((tag & 7) !== wireType) throw wrongWireType(tag & 7, name);
    values.set(tag >>> 3, wireType === VARINT ? integer(reader) : reader.string());
  }
  return values;
}

function time(reader: Reader, format: (instant: Instant) => string): string | undefined {
  const values = plain(sub(reader), TIMESTAMP);
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

/** Fields that the message omits keep the values of `earlier`, the value of an earlier occurrence, except for times. */
function readForm(reader: Reader, form: JsonForm, earlier: unknown): unknown {
  switch (form) {
    case 'time':
      return time(reader, timeText);
    case 'microTime':
      return time(reader, microTimeText);
    case 'duration': {
      const nanos = plain(sub(reader), DURATION).get(1);
      return nanos === undefined ? (earlier ?? formatDuration(0)) : formatDuration(Number(nanos) / 1_000_000);
    }
    case 'quantity':
      return plain(sub(reader), QUANTITY).get(1) ?? earlier ?? '0';
    case 'intOrString': {
      const values: PlainValues = new Map();
      if (typeof earlier === 'number') values.set(2, earlier);
      else if (typeof earlier === 'string') values.set(1, 1).set(3, earlier);
      plain(sub(reader), INT_OR_STRING, values);
      return values.get(1) === 1 ? (values.get(3) ?? '') : (values.get(2) ?? 0);
    }
    case 'raw': {
      const raw = plain(sub(reader), RAW).get(1);
      return raw === undefined ? (earlier ?? null) : JSON.parse(String(raw));
    }
  }
}

/**
 * Reads the value of the field, or an element of its list or map. A message is merged into `earlier`, the value of an earlier occurrence of
 * the field.
 */
function readValue(reader: Reader, { ref, scalar = 'any' }: FieldFacts, count: Count, earlier?: unknown): unknown {
  if (ref === undefined) return readScalar(reader, scalar);
  const form = jsonForms.get(ref);
  if (form !== undefined) return readForm(reader, form, earlier);
  const items = typeFacts(ref)?.items;
  if (items === undefined) return readMessage(sub(reader), messageOf(ref), (earlier ?? {}) as Json, count);
  const list = (earlier ?? []) as unknown[];
  readMessage(sub(reader), messageOf(ref), { [items.json]: list }, count);
  return list;
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
  // A missing value means the empty value of the type.
  return [key, found ? content : readValue(new Reader(EMPTY), field, count)];
}

const isZero = (content: unknown): boolean =>
  content === '' ||
  content === 0 ||
  content === false ||
  (typeof content === 'object' && content !== null && Object.keys(content).length === 0);

/**
 * Counts a value, because even a value of two bytes takes much more memory once it is decoded. Throws 413 RequestEntityTooLarge if there
 * are more than MAX_VALUES values.
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
  const earlier = into[json];
  const content = readValue(reader, field, count, earlier);
  // Go encodes empty values in protobuf even if it omits them in JSON. The result is JSON, so omit them.
  if (content !== undefined && !(omitempty && !pointer && isZero(content))) into[json] = content;
  else if (earlier !== undefined) delete into[json];
}

/** The abbreviations at the start of JSON names that Go's names have in upper case. */
const ABBREVIATIONS =
  /^(api|aws|cpu|csi|dns|fc|fs|gce|grpc|http|id|ip|iqn|iscsi|nfs|os|pd|qos|rbd|se|tcp|tls|ttl|tty|uid|url)(?=[A-Z]|$)/;

/** Derives the field's Go name, for error messages, from its JSON name. The result is wrong for a few fields. */
function goName({ json, inline, ref = '' }: FieldFacts): string {
  if (inline || json === 'metadata') return ref.slice(ref.lastIndexOf('.') + 1);
  if (json === '[]') return 'Items';
  return json.replace(ABBREVIATIONS, (word) => word.toUpperCase()).replace(/^./, (first) => first.toUpperCase());
}

function mayHave(wireType: number, { container, scalar }: FieldFacts): boolean {
  if (container === 'map' || !PACKABLE.has(scalar)) return wireType === LENGTH_DELIMITED;
  if (container === 'list' && wireType === LENGTH_DELIMITED) return true;
  return wireType === (scalar === 'double' ? FIXED64 : VARINT);
}

function readMessage(reader: Reader, message: Message, into: Json, count: Count): Json {
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    const field = message.get(tag >>> 3);
    if (field === undefined) {
      reader.skipType(tag & 7);
      continue;
    }
    if (!mayHave(tag & 7, field)) throw wrongWireType(tag & 7, goName(field));
    if (field.inline) readMessage(sub(reader), messageOf(field.ref ?? ''), into, count);
    else readField(reader, tag & 7, field, into, count);
  }
  return into;
}

/**
 * Decodes the object in the body, including its apiVersion and kind. `typeOf` returns the full name of the kind's type, or undefined if the
 * kind is not expected; the result then has only the apiVersion and the kind. Throws an Error if the body is not a valid encoding, and 413
 * RequestEntityTooLarge if the object has too many values.
 */
export function decodeProtobuf(
  body: Uint8Array,
  typeOf: (apiVersion: string, kind: string) => string | undefined,
): Json {
  if (!MAGIC.every((byte, index) => body[index] === byte))
    throw new Error('the body does not begin with the magic bytes');
  const reader = new Reader(body.subarray(MAGIC.length));
  const typeMeta: PlainValues = new Map();
  let raw: Uint8Array = new Uint8Array();
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    const field = UNKNOWN[tag >>> 3];
    if (field !== undefined && field[1] !== (tag & 7)) throw wrongWireType(tag & 7, field[0]);
    if (tag >>> 3 === 1) plain(sub(reader), TYPE_META, typeMeta);
    else if (tag >>> 3 === 2) raw = reader.bytes();
    else reader.skipType(tag & 7);
  }
  const apiVersion = String(typeMeta.get(1) ?? '');
  const kind = String(typeMeta.get(2) ?? '');
  const type = typeOf(apiVersion, kind);
  if (type === undefined) return { apiVersion, kind };
  return { apiVersion, kind, ...readMessage(new Reader(raw), messageOf(type), {}, { values: 0 }) };
}
