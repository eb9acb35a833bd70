/**
 * Encodes objects in protobuf, according to the facts about their types. Objects are not validated. Absent fields, and fields that have no
 * number, are not encoded.
 * Source: runtime.Unknown and the serializer of k8s.io/apimachinery, "Alternate representations of resources" of v1.33.
 */
import protobuf from 'protobufjs/minimal.js';
import {
  type FieldFacts,
  type JsonForm,
  jsonForms,
  META,
  perType,
  typeFacts,
  typeOfKind,
} from '../../api/facts/facts.ts';
import { parseDuration } from '../../machinery/time.ts';
import { MAGIC } from './envelope.ts';
import { type Instant, instantOf } from './times.ts';

const { Writer } = protobuf;
type Writer = protobuf.Writer;
type Json = Readonly<Record<string, unknown>>;
type Write = (writer: Writer, value: unknown) => void;

const VARINT = 0;
const FIXED64 = 1;
const LENGTH_DELIMITED = 2;
const tagOf = (number: number, wireType: number): number => ((number << 3) | wireType) >>> 0;

function message(number: number, content: Write): Write {
  const tag = tagOf(number, LENGTH_DELIMITED);
  return (writer, value) => {
    writer.uint32(tag).fork();
    content(writer, value);
    writer.ldelim();
  };
}

function scalar(type: FieldFacts['scalar'], number: number): Write {
  const varint = tagOf(number, VARINT);
  const delimited = tagOf(number, LENGTH_DELIMITED);
  switch (type) {
    case 'bool':
      return (writer, value) => writer.uint32(varint).bool(value === true);
    case 'int32':
    case 'int64':
      return (writer, value) => writer.uint32(varint).int64(Number(value));
    case 'double':
      return (writer, value) => writer.uint32(tagOf(number, FIXED64)).double(Number(value));
    case 'bytes':
      return (writer, value) => writer.uint32(delimited).bytes(Buffer.from(String(value), 'base64'));
    default:
      return (writer, value) => writer.uint32(delimited).string(String(value));
  }
}

const writeJson: Write = (writer, value) =>
  writer.uint32(tagOf(1, LENGTH_DELIMITED)).bytes(Buffer.from(JSON.stringify(value)));

function writeInstant(writer: Writer, instant: Instant | undefined): void {
  // Go's zero time, which means that there is no time, is an empty message.
  if (instant === undefined) return;
  writer.uint32(tagOf(1, VARINT)).int64(instant.seconds);
  if (instant.nanos !== 0) writer.uint32(tagOf(2, VARINT)).int32(instant.nanos);
}

const FORMS: Readonly<Record<JsonForm, Write>> = {
  time(writer, value) {
    const instant = instantOf(String(value));
    writeInstant(writer, instant && { ...instant, nanos: 0 });
  },
  microTime: (writer, value) => writeInstant(writer, instantOf(String(value))),
  duration: (writer, value) =>
    writer.uint32(tagOf(1, VARINT)).int64(Math.round((parseDuration(String(value)) ?? 0) * 1_000_000)),
  quantity: (writer, value) => writer.uint32(tagOf(1, LENGTH_DELIMITED)).string(String(value)),
  intOrString(writer, value) {
    if (typeof value === 'number') writer.uint32(tagOf(1, VARINT)).int64(0).uint32(tagOf(2, VARINT)).int64(value);
    else writer.uint32(tagOf(1, VARINT)).int64(1).uint32(tagOf(3, LENGTH_DELIMITED)).string(String(value));
  },
  raw: writeJson,
};

const contentOf = perType((type): Write => {
  const form = jsonForms.get(type);
  if (form !== undefined) return FORMS[form];
  let fields: readonly (readonly [json: string, write: Write])[] | undefined;
  return (writer, value) => {
    // Look up the fields only now, because types may refer to themselves.
    fields ??= fieldsOf(type);
    for (const [json, write] of fields) {
      const field = json === '' ? value : (value as Json)[json];
      if (field !== undefined && field !== null) write(writer, field);
    }
  };
});

/** Returns pairs of a JSON name and a function that writes the field. A type that is a list has one field with an empty name. */
function fieldsOf(type: string): (readonly [json: string, write: Write])[] {
  const { fields = [], items } = typeFacts(type) ?? {};
  if (items !== undefined) return [['', fieldWrite(items)]];
  return fields.filter(({ number }) => number > 0).map((field) => [field.json, fieldWrite(field)]);
}

function fieldWrite(field: FieldFacts): Write {
  const { number, container } = field;
  if (container === 'map') return mapWrite(field);
  const write = valueWrite(field, number);
  if (container === undefined) return write;
  return (writer, list) => {
    for (const element of list as unknown[]) write(writer, element ?? {});
  };
}

const valueWrite = ({ scalar: type, ref = '' }: FieldFacts, number: number): Write =>
  type === undefined ? message(number, contentOf(ref)) : scalar(type, number);

function mapWrite(field: FieldFacts): Write {
  const write = valueWrite(field, 2);
  const entry = message(field.number, (writer, pair) => {
    const [key, value] = pair as [string, unknown];
    writer.uint32(tagOf(1, LENGTH_DELIMITED)).string(key);
    write(writer, value);
  });
  return (writer, map) => {
    // Go sorts the keys, so that equal objects have equal encodings.
    for (const key of Object.keys(map as Json).sort()) entry(writer, [key, (map as Json)[key]]);
  };
}

interface TypeMeta {
  apiVersion?: string;
  kind?: string;
}

/** Encodes a value of the type, without an envelope. */
export function encodeAs(type: string, value: unknown): Uint8Array {
  const writer = Writer.create();
  contentOf(type)(writer, value);
  return writer.finish();
}

/** Encodes an object without the envelope. Throws an Error if there are no facts about its type. */
export function encodeFields(object: TypeMeta): Uint8Array {
  const { apiVersion = '', kind = '' } = object;
  const [version = '', group = ''] = apiVersion.split('/').reverse();
  const type = typeOfKind(group, version, kind);
  if (type === undefined) throw new Error(`there are no facts about the type of ${apiVersion}, ${kind}`);
  return encodeAs(type, object);
}

/**
 * Returns the bytes before the fields of an object: the magic bytes, and the start of the runtime.Unknown. `bytes`: the length of the
 * fields.
 */
export function envelopeOf({ apiVersion = '', kind = '' }: TypeMeta, bytes: number): Uint8Array {
  const writer = Writer.create();
  writer.uint32(tagOf(1, LENGTH_DELIMITED)).fork();
  writer.uint32(tagOf(1, LENGTH_DELIMITED)).string(apiVersion);
  writer.uint32(tagOf(2, LENGTH_DELIMITED)).string(kind);
  writer.ldelim();
  writer.uint32(tagOf(2, LENGTH_DELIMITED)).uint32(bytes);
  return Buffer.concat([MAGIC, writer.finish()]);
}

/** Encodes an object with its envelope. Throws an Error like encodeFields(). */
export function encodeProtobuf(object: TypeMeta): Uint8Array {
  const fields = encodeFields(object);
  return Buffer.concat([envelopeOf(object, fields.length), fields]);
}

/** Returns the bytes before the fields of a list's item. The items of every list are in field 2. `bytes`: the length of the fields. */
export const itemStart = (bytes: number): Uint8Array =>
  Writer.create().uint32(tagOf(2, LENGTH_DELIMITED)).uint32(bytes).finish();

/** The metadata of every list is in field 1. */
export function encodeListMeta(metadata: object): Uint8Array {
  const writer = Writer.create();
  message(1, contentOf(`${META}.ListMeta`))(writer, metadata);
  return writer.finish();
}

/** The length of the number that precedes an event. */
export const EVENT_LENGTH_BYTES = 4;

/**
 * Returns one event of a watch: the length of the message, and a WatchEvent whose object has an envelope.
 * Source: WatchEvent of meta/v1, and the length-delimited framer of k8s.io/apimachinery.
 */
export function encodeEvent(type: string, object: TypeMeta): Uint8Array {
  const writer = Writer.create();
  writer.uint32(tagOf(1, LENGTH_DELIMITED)).string(type);
  writer.uint32(tagOf(2, LENGTH_DELIMITED)).fork();
  writer.uint32(tagOf(1, LENGTH_DELIMITED)).bytes(encodeProtobuf(object));
  writer.ldelim();
  const event = writer.finish();
  const framed = Buffer.alloc(EVENT_LENGTH_BYTES + event.length);
  framed.writeUInt32BE(event.length);
  framed.set(event, EVENT_LENGTH_BYTES);
  return framed;
}

export function hasProtobuf(group: string, version: string, kind: string): boolean {
  const type = typeOfKind(group, version, kind);
  return type !== undefined && (typeFacts(type)?.fields.some(({ number }) => number > 0) ?? false);
}
