import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createSizeReader } from './terminal-sizes.ts';

const edge = fc.nat(65_535);

test('terminal sizes are returned complete and in order, however they are split', () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ Width: edge, Height: edge })),
      fc.constantFrom('', '\n', '\r\n   '),
      fc.integer({ min: 1, max: 40 }),
      (sizes, between, length) => {
        const sent = Buffer.from(sizes.map((size) => JSON.stringify(size)).join(between));
        const read = createSizeReader();
        let received = '';
        for (let at = 0; at < sent.length; at += length) received += read(sent.subarray(at, at + length));
        expect(received).toBe(sizes.map((size) => `${JSON.stringify(size)}\n`).join(''));
      },
    ),
  );
});

test('any amount of space is allowed between terminal sizes', () => {
  const read = createSizeReader();
  expect(read(Buffer.alloc(5000, ' '))).toHaveLength(0);
  expect(read(Buffer.from('{"Width":1,"Height":2}')).toString()).toBe('{"Width":1,"Height":2}\n');
});

test.each([
  ['no object', '}'],
  ['an edge too long', '{"Width":65536,"Height":1}'],
  ['an edge below zero', '{"Width":-1,"Height":1}'],
  ['half an edge', '{"Width":1.5,"Height":1}'],
  ['no height', '{"Width":1}'],
  ['text', '{"Width":"}"}'],
  ['a long incomplete object', '{'.repeat(1025)],
  ['a long object', `{"Width":1,"Height":1,"x":"${'x'.repeat(1024)}"}`],
])('a terminal size with %s is refused', (_what, text) => {
  const read = createSizeReader();
  expect(() => read(Buffer.from(text))).toThrow('the size of a terminal');
});

test('an incomplete terminal size is also refused if it grows too long in several pieces', () => {
  const read = createSizeReader();
  expect(() => {
    for (let count = 0; count < 100; count++) read(Buffer.from('{"Width":1111'));
  }).toThrow('the size of a terminal has more than 1024 bytes');
});

test('a message with more than 128 KiB of terminal sizes is refused before it is parsed', () => {
  const read = createSizeReader();
  const size = '{"Width":1,"Height":2}';
  expect(read(Buffer.from(size.repeat(5000)))).toHaveLength(5000 * (size.length + 1));
  expect(() => read(Buffer.from(size.repeat(6000)))).toThrow('have more than 131072 bytes in one message');
});
