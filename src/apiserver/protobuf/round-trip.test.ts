import fc from 'fast-check';
import { expect, test } from 'vitest';
import { typeNames, typeOfKind } from '../../api/facts/facts.ts';
import { decode } from '../../api/schema.ts';
import { decodeProtobuf } from './decode.ts';
import { encodeAs, encodeEvent, encodeProtobuf, envelopeOf } from './encode.ts';
import { wrapped } from './message-fixture.ts';
import { arbitraryOf } from './value-arbitrary.ts';

test('every type keeps all its fields when it is encoded in protobuf and decoded', () => {
  for (const type of typeNames()) {
    fc.assert(
      fc.property(arbitraryOf(type), (value) => {
        if (Array.isArray(value)) return;
        const fields = encodeAs(type, value);
        const body = Buffer.concat([envelopeOf({ apiVersion: 'v1', kind: 'K' }, fields.length), fields]);
        expect(
          decodeProtobuf(body, () => type),
          type,
        ).toEqual({ apiVersion: 'v1', kind: 'K', ...(value as object) });
      }),
      { numRuns: 5 },
    );
  }
});

/** Drops all empty lists and objects, because protobuf does not distinguish most of them from absent ones (it does for pointers). */
function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(withoutEmpty);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, each]) => [key, withoutEmpty(each)] as const);
  const kept = entries.filter(([, each]) => each !== undefined);
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

test('every type keeps all its fields through JSON, protobuf and JSON again', () => {
  for (const type of typeNames()) {
    fc.assert(
      fc.property(arbitraryOf(type), (given) => {
        if (Array.isArray(given)) return;
        const { value, typeErrors, unknownFields } = decode(type, given);
        expect([type, typeErrors, unknownFields]).toEqual([type, [], []]);
        expect(value, type).toMatchObject(given as object);
        const fields = encodeAs(type, value);
        const body = Buffer.concat([envelopeOf({}, fields.length), fields]);
        const decoded = decodeProtobuf(body, () => type);
        // The envelope has an empty apiVersion and kind.
        const expected = decode(type, { apiVersion: '', kind: '', ...value }).value;
        expect(withoutEmpty(decode(type, decoded).value), type).toEqual(withoutEmpty(expected));
      }),
      { numRuns: 5 },
    );
  }
});

test('an object is encoded as Go encodes it, without the fields that are absent', () => {
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'one', labels: { b: '2', a: '1' }, creationTimestamp: '2026-01-31T09:30:00Z' },
    type: 'Opaque',
    data: { key: 'AP8=' },
  };
  const withoutEmptyFields = (body: Uint8Array): Buffer => {
    // Go also writes the empty contentEncoding and contentType of the envelope.
    return Buffer.from(body.subarray(0, body.length - 4));
  };
  expect(Buffer.from(encodeProtobuf(secret))).toEqual(
    withoutEmptyFields(
      wrapped('v1', 'Secret', [
        [
          1,
          [
            [1, 'one'],
            [8, [[1, 1769851800]]],
            [
              11,
              [
                [1, 'a'],
                [2, '1'],
              ],
            ],
            [
              11,
              [
                [1, 'b'],
                [2, '2'],
              ],
            ],
          ],
        ],
        [
          2,
          [
            [1, 'key'],
            [2, new Uint8Array([0, 255])],
          ],
        ],
        [3, 'Opaque'],
      ]),
    ),
  );
});

test('an event is preceded by its length and contains the object with its envelope', () => {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'one' } };
  const bytes = Buffer.from(encodeEvent('ADDED', object));
  expect(bytes.readUInt32BE(0)).toBe(bytes.length - 4);
  const at = bytes.indexOf('k8s\0');
  expect(decodeProtobuf(bytes.subarray(at), () => typeOfKind('', 'v1', 'ConfigMap'))).toEqual(object);
});

test('an object without facts cannot be encoded', () => {
  expect(() => encodeProtobuf({ apiVersion: 'example.com/v1', kind: 'Widget' })).toThrow('no facts');
});
