import { expect, test } from 'vitest';
import { printable, printableText } from './printable.ts';

test.each([
  ['red \u001b[31m', 'red \\u001b[31m'],
  ['title \u009d0;x\u0007', 'title \\u009d0;x\\u0007'],
  ['a\rb\u007f', 'a\\u000db\\u007f'],
  ['\u202egnirts\u2066\u2028', '\\u202egnirts\\u2066\\u2028'],
  ['1\u200e-2\u200f-3\u061c', '1\\u200e-2\\u200f-3\\u061c'],
  ['é日 👩‍💻 \\ "', 'é日 👩‍💻 \\ "'],
])('the control characters of %j are visible', (text, shown) => {
  expect([printable(text), printableText(text)]).toEqual([shown, shown]);
});

test('line breaks and tabs are kept only in a text of several lines', () => {
  expect(printableText('a\n\tb\u001b')).toBe('a\n\tb\\u001b');
  expect(printable('a\n\tb')).toBe('a\\u000a\\u0009b');
});

test('a text in JSON keeps its meaning', () => {
  const value = { message: 'a\u001b\u009b\u202e\n\tb' };
  expect(JSON.parse(printableText(JSON.stringify(value, undefined, 2)))).toEqual(value);
});
