import protobuf from 'protobufjs/minimal.js';

export type Field = [number, string | number | boolean | Uint8Array | Field[]];

export function message(fields: Field[]): Uint8Array {
  const writer = protobuf.Writer.create();
  for (const [number, content] of fields) {
    if (typeof content === 'string') writer.uint32((number << 3) | 2).string(content);
    else if (typeof content === 'number') writer.uint32(number << 3).int64(content);
    else if (typeof content === 'boolean') writer.uint32(number << 3).bool(content);
    else writer.uint32((number << 3) | 2).bytes(content instanceof Uint8Array ? content : message(content));
  }
  return writer.finish();
}

/** Encodes the body of a request: the magic bytes, and a runtime.Unknown with the object. */
export const wrapped = (apiVersion: string, kind: string, fields: Field[]): Buffer =>
  Buffer.concat([
    Buffer.from('k8s\0'),
    message([
      [
        1,
        [
          [1, apiVersion],
          [2, kind],
        ],
      ],
      [2, message(fields)],
      [3, ''],
      [4, ''],
    ]),
  ]);
