import { expect, test } from 'vitest';
import { type LogMessage, textLine } from './text-line.ts';

const message = (part: Partial<LogMessage>): LogMessage => ({
  time: new Date('2026-02-03T04:05:06.789Z'),
  level: 'info',
  message: 'API server is listening',
  fields: {},
  ...part,
});

test.each([
  [{}, '2026-02-03T04:05:06.789Z INFO  API server is listening'],
  [
    { level: 'warn', fields: { host: '127.0.0.1', port: 6443, absent: undefined, none: null } },
    '2026-02-03T04:05:06.789Z WARN  API server is listening host=127.0.0.1 port=6443 none=null',
  ],
  [
    { fields: { error: 'no such file: "a b"', list: ['a', 1], empty: '' } },
    '2026-02-03T04:05:06.789Z INFO  API server is listening error="no such file: \\"a b\\"" list=["a",1] empty=""',
  ],
  [
    { message: 'first\nsecond\u001b[2J', fields: { text: '\u009b2J\u2028\n' } },
    '2026-02-03T04:05:06.789Z INFO  first\\u000asecond\\u001b[2J text="\\u009b2J\\u2028\\n"',
  ],
] as const)('the line of %j is one line without control characters', (part, line) => {
  expect(textLine(message(part as Partial<LogMessage>), { colors: false })).toBe(`${line}\n`);
});

test('the line for the journal begins with its priority, and has no time', () => {
  const line = textLine(message({ level: 'warn', fields: { a: 1 } }), { colors: false, journal: true });
  expect(line).toBe('<4>WARN  API server is listening a=1\n');
});

test('a value that is not JSON is written as text', () => {
  const line = textLine(message({ fields: { big: 1n } }), { colors: false });
  expect(line).toBe('2026-02-03T04:05:06.789Z INFO  API server is listening big="1"\n');
});

test('colors mark the time, the level and the names of fields', () => {
  expect(textLine(message({ level: 'error', fields: { a: 1 } }), { colors: true })).toBe(
    '\u001b[2m2026-02-03T04:05:06.789Z\u001b[0m \u001b[31mERROR\u001b[0m API server is listening \u001b[2ma=\u001b[0m1\n',
  );
});
