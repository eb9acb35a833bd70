/** Encodes objects as protobuf, including objects that no Go client could encode. */
import protobuf from 'protobufjs/minimal.js';
import type { KindDefinition } from '../../src/api/kind.ts';
import { type Shape, schemaTypes } from '../../src/api/schema.ts';
import { protobufFields } from '../../src/apiserver/protobuf/fields.ts';
import { isObject } from './hostile-values.ts';

/**
 * Writes a field like Go's protobuf encoder if the value has the field's shape. A boolean or text in a scalar field of another shape is
 * written as it is, and an invalid quantity as 1. Other values are omitted.
 */
function writeField(writer: protobuf.Writer, number: number, shape: Shape, value: unknown): void {
  const message = (write: (inner: protobuf.Writer) => void): void => {
    write(writer.uint32((number << 3) | 2).fork());
    writer.ldelim();
  };
  if (typeof shape === 'object') {
    if ('array' in shape) {
      if (Array.isArray(value)) for (const each of value) writeField(writer, number, shape.array, each);
    } else if ('ref' in shape) message((inner) => writeMessage(inner, shape.ref, value));
    else if (isObject(value))
      for (const [key, content] of Object.entries(value))
        message((inner) => writeField(inner.uint32(10).string(key), 2, shape.map, content));
  } else if (typeof value === 'number' && shape === 'integer')
    writer.uint32(number << 3).int64(Math.trunc(value) % 2 ** 62);
  else if (typeof value === 'boolean') writer.uint32(number << 3).bool(value);
  else if (shape === 'quantity')
    message((inner) => void inner.uint32(10).string(typeof value === 'string' ? value : '1'));
  else if (typeof value === 'string') writer.uint32((number << 3) | 2).string(value);
}

function writeMessage(writer: protobuf.Writer, type: string, value: unknown): void {
  if (!isObject(value)) return;
  const words = (protobufFields[type] ?? '').split(' ');
  for (let at = 0; at + 1 < words.length; at += 2) {
    const [name = '', number = ''] = [words[at], words[at + 1]];
    const shape = schemaTypes[type]?.[name]?.shape;
    if (shape !== undefined && value[name] !== undefined)
      writeField(writer, Number.parseInt(number, 10), shape, value[name]);
  }
}

/** Encodes an object in the form in which clients send it: a magic number, then a runtime.Unknown with the object's type and bytes. */
export function encodeProtobuf(apiVersion: string, kind: KindDefinition, object: object): Buffer {
  const writer = protobuf.Writer.create();
  writer.uint32(10).fork().uint32(10).string(apiVersion).uint32(18).string(kind.kind).ldelim();
  writeMessage(writer.uint32(18).fork(), kind.schema, object);
  return Buffer.concat([Buffer.from('k8s\0'), writer.ldelim().finish()]);
}
