/** Encodes objects as protobuf, including objects that no Go client could encode. */
import protobuf from 'protobufjs/minimal.js';
import { type FieldFacts, jsonForms, typeFacts } from '../../src/api/facts/facts.ts';
import type { KindDefinition } from '../../src/api/kind.ts';
import { isObject } from './hostile-values.ts';

type Write = (writer: protobuf.Writer) => void;

function writeMessage(writer: protobuf.Writer, number: number, write: Write): void {
  write(writer.uint32((number << 3) | 2).fork());
  writer.ldelim();
}

/**
 * Writes a value like Go's protobuf encoder if it has the field's type. A boolean or text in a scalar field of another type is written as
 * it is, and an invalid quantity as 1. Other values are omitted.
 */
function writeValue(
  writer: protobuf.Writer,
  number: number,
  { ref = '', scalar = 'any' }: FieldFacts,
  value: unknown,
): void {
  if (typeFacts(ref) !== undefined) writeMessage(writer, number, (inner) => writeFields(inner, ref, value));
  else if (typeof value === 'number' && /^int/.test(scalar))
    writer.uint32(number << 3).int64(Math.trunc(value) % 2 ** 62);
  else if (typeof value === 'boolean') writer.uint32(number << 3).bool(value);
  else if (jsonForms.get(ref) === 'quantity')
    writeMessage(writer, number, (inner) => void inner.uint32(10).string(typeof value === 'string' ? value : '1'));
  else if (typeof value === 'string') writer.uint32((number << 3) | 2).string(value);
}

function writeFields(writer: protobuf.Writer, type: string, value: unknown): void {
  if (!isObject(value)) return;
  for (const field of typeFacts(type)?.fields ?? []) {
    const { number, json, container, inline, ref = '' } = field;
    const content = value[json];
    if (number === 0) continue;
    if (inline) writeMessage(writer, number, (inner) => writeFields(inner, ref, value));
    else if (content === undefined) continue;
    else if (container === undefined) writeValue(writer, number, field, content);
    else if (container === 'map') {
      for (const [key, each] of Object.entries(isObject(content) ? content : {}))
        writeMessage(writer, number, (inner) => writeValue(inner.uint32(10).string(key), 2, field, each));
    } else if (Array.isArray(content)) for (const each of content) writeValue(writer, number, field, each);
  }
}

/** Returns the form that clients send: a magic number, then a runtime.Unknown with the object's type and bytes. */
export function encodeProtobuf(apiVersion: string, kind: KindDefinition, object: object): Buffer {
  const writer = protobuf.Writer.create();
  writer.uint32(10).fork().uint32(10).string(apiVersion).uint32(18).string(kind.kind).ldelim();
  writeMessage(writer, 2, (inner) => writeFields(inner, kind.schema, object));
  return Buffer.concat([Buffer.from('k8s\0'), writer.finish()]);
}
