import { expect, test } from 'vitest';
import { MAX_ERROR_CHARS } from './error-text.ts';
import { copyJson, goText, type JsonValue } from './json-value.ts';

test.each<[JsonValue, string]>([
  [null, '<nil>'],
  [1.5, '1.5'],
  ['a b', 'a b'],
  [[], '[]'],
  [{}, 'map[]'],
  [['a', null, [true]], '[a <nil> [true]]'],
  [{ b: { c: 1 }, a: [2, 'x'] }, 'map[a:[2 x] b:map[c:1]]'],
])('goText() of %j is formatted as by Go', (value, text) => {
  expect(goText(value)).toBe(text);
});

test('goText() truncates a long text at any level of nesting', () => {
  let value: JsonValue = { z: 'x'.repeat(MAX_ERROR_CHARS), zz: 'never read' };
  for (let level = 0; level < 900; level++) value = { a: 'b', c: value };
  const text = goText(value);
  expect(text).toHaveLength(MAX_ERROR_CHARS + 3);
  expect(text.startsWith('map[a:b c:map[a:b c:map[')).toBe(true);
  expect(text.endsWith('xxx...')).toBe(true);
});

test('goText() does not read values after the truncation', () => {
  const value = { a: 'x'.repeat(MAX_ERROR_CHARS + 1) } as { a: string; b?: string };
  Object.defineProperty(value, 'b', {
    enumerable: true,
    get: () => {
      throw new Error('the value was read');
    },
  });
  expect(goText(value as JsonValue)).toHaveLength(MAX_ERROR_CHARS + 3);
});

test('copyJson() copies all levels, omits undefined fields, and keeps a field with the name __proto__', () => {
  const value = JSON.parse('{"a":[1,{"b":null}],"__proto__":{"c":"d"}}') as { a: unknown[] };
  const copy = copyJson({ ...value, absent: undefined });
  expect(JSON.stringify(copy)).toBe('{"a":[1,{"b":null}],"__proto__":{"c":"d"}}');
  expect(Object.keys(copy)).not.toContain('absent');
  expect(copy.a).not.toBe(value.a);
  expect(copy.a[1]).not.toBe(value.a[1]);
});
