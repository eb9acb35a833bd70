import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type JsonObject, type JsonValue, jsonEqual } from '../json-value.ts';
import { ApiError } from '../status.ts';
import { frozen } from '../testing.ts';
import { applyJsonPatch } from './json-patch.ts';
import { applyMergePatch } from './merge-patch.ts';
import { applyPatch } from './patch.ts';

const failureOf = (run: () => unknown): { code: number; message: string; cause?: string } => {
  try {
    run();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const cause = error.status.details?.causes?.[0]?.message;
    return { code: error.code, message: error.message, cause };
  }
  throw new Error('did not fail');
};

describe('merge patch (the examples of RFC 7386)', () => {
  it.each<[JsonObject, JsonObject, JsonObject]>([
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ])('a merge patch of %j with %j returns %j', (object, patch, expected) => {
    expect(applyMergePatch(frozen(object), frozen(patch))).toEqual(expected);
  });
  it.each([[['c']], ['bar'], [null], [3]])('a merge patch must be an object, not %j', (patch) => {
    expect(failureOf(() => applyMergePatch({}, patch))).toEqual({ code: 400, message: 'Invalid JSON Patch' });
  });
  it('a merge patch does not modify prototypes', () => {
    const patched = applyMergePatch({}, JSON.parse('{"__proto__":{"polluted":true}}'));
    expect(Object.hasOwn(patched, '__proto__')).toBe(true);
    expect((patched as { polluted?: boolean }).polluted).toBeUndefined();
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
});

describe('JSON patch', () => {
  it.each<[string, JsonObject, unknown[], JsonObject]>([
    ['add a member', { foo: 'bar' }, [{ op: 'add', path: '/baz', value: 'qux' }], { foo: 'bar', baz: 'qux' }],
    ['insert', { foo: ['a', 'c'] }, [{ op: 'add', path: '/foo/1', value: 'b' }], { foo: ['a', 'b', 'c'] }],
    ['append', { foo: ['a'] }, [{ op: 'add', path: '/foo/-', value: ['b'] }], { foo: ['a', ['b']] }],
    [
      'remove',
      { foo: ['a', 'b'], x: 1 },
      [
        { op: 'remove', path: '/foo/0' },
        { op: 'remove', path: '/x' },
      ],
      { foo: ['b'] },
    ],
    ['replace', { a: 1 }, [{ op: 'replace', path: '/a', value: null }], { a: null }],
    ['move', { a: { b: 1 }, c: {} }, [{ op: 'move', from: '/a/b', path: '/c/d' }], { a: {}, c: { d: 1 } }],
    [
      'copy',
      { a: [1] },
      [
        { op: 'copy', from: '/a', path: '/b' },
        { op: 'add', path: '/b/-', value: 2 },
      ],
      { a: [1], b: [1, 2] },
    ],
    [
      'test, with success',
      { a: { b: [1, 'x'] } },
      [
        { op: 'test', path: '/a', value: { b: [1, 'x'] } },
        { op: 'test', path: '/none', value: null },
      ],
      { a: { b: [1, 'x'] } },
    ],
    [
      'escapes',
      { 'a/b': 1, 'm~n': 2 },
      [
        { op: 'replace', path: '/a~1b', value: 3 },
        { op: 'remove', path: '/m~0n' },
      ],
      { 'a/b': 3 },
    ],
    ['no operations', { a: 1 }, [], { a: 1 }],
    ['replace the document', { a: 1 }, [{ op: 'replace', path: '', value: { b: 2 } }], { b: 2 }],
  ])('JSON patch: %s', (_, object, patch, expected) => {
    expect(applyJsonPatch(frozen(object), frozen(patch))).toEqual(expected);
  });

  it.each<[unknown, string]>([
    [[{ op: 'test', path: '/a', value: 2 }], 'testing value /a failed: test failed'],
    [[{ op: 'test', path: '/none', value: 2 }], 'testing value /none failed: test failed'],
    [[{ op: 'remove', path: '/none' }], 'remove operation does not apply: doc is missing path: "/none": missing value'],
    [
      [{ op: 'replace', path: '/x/y', value: 1 }],
      'replace operation does not apply: doc is missing path: "/x/y": missing value',
    ],
    [
      [{ op: 'add', path: '/x/y', value: 1 }],
      'add operation does not apply: doc is missing path: "/x/y": missing value',
    ],
    [
      [{ op: 'add', path: '/l/7', value: 1 }],
      "error in add for path: '/l/7': Unable to access invalid index: 7: invalid index referenced",
    ],
    [
      [{ op: 'replace', path: '/l/x', value: 1 }],
      'replace operation does not apply: doc is missing path: "/l/x": missing value',
    ],
    [
      [{ op: 'replace', path: '/l/length', value: 100_000_000 }],
      'replace operation does not apply: doc is missing path: "/l/length": missing value',
    ],
    [
      [{ op: 'remove', path: '/l/length' }],
      'remove operation does not apply: doc is missing path: "/l/length": missing value',
    ],
    [
      [{ op: 'move', from: '/a', path: '/l/7' }],
      "error in move for path: '/l/7': Unable to access invalid index: 7: invalid index referenced",
    ],
    [
      [{ op: 'move', from: '/none', path: '/a' }],
      'move operation does not apply: doc is missing from path: /none: missing value',
    ],
    [[{ op: 'frob', path: '/a' }], 'Unexpected kind: frob'],
    [[{ op: '_get', path: '/a' }], 'Unexpected kind: _get'],
    [[{ op: 'toString', path: '/a' }], 'Unexpected kind: toString'],
    [[{ op: 'remove' }], 'remove operation failed to decode path: missing value'],
    [[{ op: 'replace', path: '', value: 1 }], 'the patched document is not an object'],
  ])('JSON patch rejects %j', (patch, cause) => {
    expect(failureOf(() => applyJsonPatch(frozen({ a: 1, l: [] }), patch))).toEqual({
      code: 422,
      message: 'the server rejected our request due to an error in our request',
      cause,
    });
  });
  it('a JSON patch does not modify prototypes', () => {
    for (const path of ['/__proto__/x', '/constructor/prototype/x', '/constructor/x', '/l/constructor/x']) {
      expect(failureOf(() => applyJsonPatch({ l: [] }, [{ op: 'add', path, value: 1 }])).code).toBe(422);
    }
    expect(({} as { x?: number }).x).toBeUndefined();
    expect((Object as unknown as { x?: number }).x).toBeUndefined();
  });
  it.each([
    ['an object', { op: 'add' }, 400, 'json: cannot unmarshal object into Go value of type jsonpatch.Patch'],
    ['a string', 'x', 400, 'json: cannot unmarshal string into Go value of type jsonpatch.Patch'],
    ['a list of numbers', [1], 400, 'json: cannot unmarshal number into Go value of type jsonpatch.Operation'],
    [
      'more than 10,000 operations',
      Array(10_001).fill({ op: 'test', path: '', value: {} }),
      413,
      'Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001',
    ],
  ])('a JSON patch may not be %s', (_, patch, code, message) => {
    expect(failureOf(() => applyJsonPatch({}, patch))).toEqual({ code, message });
  });
});

describe('properties of patches', () => {
  const leaf = fc.oneof(fc.string({ maxLength: 3 }), fc.integer(), fc.boolean());
  const { value } = fc.letrec<{ value: JsonValue; object: JsonObject }>((tie) => ({
    value: fc.oneof({ depthSize: 'small' }, leaf, fc.array(tie('value'), { maxLength: 3 }), tie('object')),
    object: fc.dictionary(fc.constantFrom('a', 'b', 'c', '__proto__'), tie('value'), {
      maxKeys: 3,
    }) as fc.Arbitrary<JsonObject>,
  }));
  const object = fc.dictionary(fc.constantFrom('a', 'b', 'c'), value) as fc.Arbitrary<JsonObject>;

  it('a merge patch of equal content changes nothing, and merge patches are idempotent', () => {
    fc.assert(
      fc.property(object, object, (a, b) => {
        frozen(a);
        frozen(b);
        expect(jsonEqual(applyMergePatch(a, a), a)).toBe(true);
        const once = applyMergePatch(a, b);
        expect(jsonEqual(applyMergePatch(once, b), once)).toBe(true);
      }),
    );
  });
  it('any patch is applied or rejected with an ApiError, and never modifies its input', () => {
    const types = [
      'application/json-patch+json',
      'application/merge-patch+json',
      'application/strategic-merge-patch+json',
    ] as const;
    const pointer = fc.constantFrom('', '/a', '/a/b', '/a/0', '/a/-', '/b/c', '/~1');
    const operation = fc.record(
      { op: fc.constantFrom('add', 'remove', 'replace', 'move', 'copy', 'test'), path: pointer, from: pointer, value },
      { requiredKeys: ['op', 'path'] },
    );
    fc.assert(
      fc.property(fc.constantFrom(...types), object, fc.oneof(value, fc.array(operation)), (type, target, body) => {
        try {
          applyPatch(type, frozen(target), frozen(body), () => undefined);
        } catch (error) {
          if (!(error instanceof ApiError)) throw error;
        }
      }),
    );
  });
});
