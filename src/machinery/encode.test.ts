import { expect, test } from 'vitest';
import { dropText, encodeOnce, giveText } from './encode.ts';

test('encodeOnce() keeps the text of an object', () => {
  const object = { a: 1 };
  const text = encodeOnce(object);
  object.a = 2;
  expect(text).toBe('{"a":1}');
  expect(encodeOnce(object)).toBe(text);
});

test('giveText() gives the text of an object only to the next call of encodeOnce(), and not if a text is kept', () => {
  const object = { a: 1 };
  giveText(object, '{ "a": 1 }');
  expect(encodeOnce(object)).toBe('{ "a": 1 }');
  expect(encodeOnce(object)).toBe('{"a":1}');
  giveText(object, '{ "a": 1 }');
  expect(encodeOnce(object)).toBe('{"a":1}');
});

test('dropText() drops a text that was not used', () => {
  const object = { a: 1 };
  giveText(object, '{ "a": 1 }');
  dropText(object);
  expect(encodeOnce(object)).toBe('{"a":1}');
});
