import fc from 'fast-check';
import { expect, test } from 'vitest';
import { jsonLines } from './json-lines.ts';

test('property: lines are parsed whole wherever the chunks end, even inside a character', () => {
  fc.assert(
    fc.property(fc.array(fc.jsonValue()), fc.array(fc.nat(20)), (values, cuts) => {
      const bytes = Buffer.from(values.map((value) => `${JSON.stringify(value)}\n`).join(''));
      const seen: unknown[] = [];
      const feed = jsonLines((value) => seen.push(value));
      let at = 0;
      for (const size of [...cuts, bytes.length]) {
        feed(bytes.subarray(at, at + size));
        at += size;
      }
      expect(JSON.stringify(seen)).toBe(JSON.stringify(values));
    }),
  );
});

test('an incomplete line is not passed on, and an invalid line throws an error', () => {
  const seen: unknown[] = [];
  const feed = jsonLines((value) => seen.push(value));
  feed(Buffer.from('{"a":1}\n\n{"b":'));
  expect(seen).toEqual([{ a: 1 }]);
  expect(() => feed(Buffer.from('oops\n'))).toThrow(SyntaxError);
});
