import { expect, test } from 'vitest';
import { colored, createLines, createTimedLines, type LineSplitter } from './merged-lines.ts';

const feed = (lines: LineSplitter, ...chunks: string[]): string[] =>
  chunks.map((chunk) => lines.feed(Buffer.from(chunk)).toString());

test('each complete line gets the prefix, however the log is split into chunks', () => {
  const lines = createLines('[app] ');
  expect(feed(lines, 'a', 'b\nc\n\nd', '\n', 'e')).toEqual(['', '[app] ab\n[app] c\n[app] \n', '[app] d\n', '']);
  expect(lines.end().toString()).toBe('[app] e\n');
  expect(lines.end().toString()).toBe('');
});

test('invalid UTF-8 and characters split between chunks are passed on unchanged', () => {
  const lines = createLines('');
  const bytes = Buffer.from([0xff, 0xc3, 0x0a, 0xe2, 0x82, 0xac, 0x0a]);
  const output = Buffer.concat([...bytes].map((byte) => lines.feed(Buffer.from([byte]))));
  expect(output.equals(bytes)).toBe(true);
});

test('the timestamp of a line is printed only with timestamps', () => {
  const text = '2026-01-31T09:30:00.000000001Z one\n2026-01-31T09:30:00.000000001Z two\n';
  expect(feed(createTimedLines({ prefix: '', timestamps: true }).begin(), text)).toEqual([text]);
  expect(feed(createTimedLines({ prefix: '> ', timestamps: false }).begin(), text)).toEqual(['> one\n> two\n']);
});

test('a reopened log continues after the last line that was already printed', () => {
  const lines = createTimedLines({ prefix: '', timestamps: false });
  const at = (nanos: number, text: string): string => `2026-01-31T09:30:00.00000000${nanos}Z ${text}\n`;
  expect(feed(lines.begin(), at(1, 'a') + at(2, 'b'))).toEqual(['a\nb\n']);
  expect(feed(lines.begin(), at(1, 'a') + at(2, 'b') + at(3, 'c'))).toEqual(['c\n']);
  expect(feed(lines.begin(), at(4, 'd'), at(4, 'e'))).toEqual(['d\n', 'e\n']);
});

test('ten consecutive containers have different colors', () => {
  const colors = Array.from({ length: 10 }, (_, index) => colored('x', index));
  expect(new Set(colors).size).toBe(10);
  expect(colored('x', 10)).toBe(colors[0]);
  expect(colors[0]).toBe('\u001b[36mx\u001b[0m');
});
