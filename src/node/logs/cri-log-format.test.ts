import { describe, expect, it } from 'vitest';
import type { LogOptions } from '../../ports/node-connection.ts';
import { createLogParser, type LogFormat, logFormat } from './cri-log-format.ts';

const NOW = Date.parse('2026-01-31T09:30:09Z');
const ALL: LogFormat = { timestamps: false, stream: 'All' };

describe('logFormat', () => {
  const table: [LogOptions, LogFormat][] = [
    [{}, { timestamps: false, stream: 'All', sinceMillis: undefined }],
    [
      { timestamps: true, stream: 'Stderr' },
      { timestamps: true, stream: 'Stderr', sinceMillis: undefined },
    ],
    [
      { timestamps: false, stream: 'Stdout' },
      { timestamps: false, stream: 'Stdout', sinceMillis: undefined },
    ],
    [{ sinceSeconds: 5 }, { ...ALL, sinceMillis: NOW - 5000 }],
    [{ sinceSeconds: 0 }, { ...ALL, sinceMillis: NOW }],
    [{ sinceTime: '1970-01-01T00:00:01Z' }, { ...ALL, sinceMillis: 1000 }],
    [{ sinceTime: '1970-01-01T00:00:00Z' }, { ...ALL, sinceMillis: 0 }],
    [
      { sinceTime: '1970-01-01T00:00:01Z', sinceSeconds: 5 },
      { ...ALL, sinceMillis: 1000 },
    ],
    [{ sinceTime: 'yesterday' }, { ...ALL, sinceMillis: undefined }],
  ];
  it.each(table)('logFormat converts the options %j', (options, expected) => {
    expect(logFormat(options, NOW)).toStrictEqual(expected);
  });
});

function parsed(format: Partial<LogFormat>, ...chunks: string[]): string {
  const parse = createLogParser({ ...ALL, ...format });
  return Buffer.concat(chunks.map((chunk) => parse(Buffer.from(chunk)))).toString();
}
const record = (text: string, stream = 'stdout', tags = 'F', time = '2026-01-31T09:30:01.5Z'): string =>
  `${time} ${stream} ${tags} ${text}\n`;

const records: [string, string, string][] = [
  ['a complete record', record('one'), 'one\n'],
  ['a record of stderr', record('one', 'stderr'), 'one\n'],
  ['content with spaces', record(' a  b '), ' a  b \n'],
  ['empty content', record(''), '\n'],
  ['a record without content and without a space after the tag', '2026-01-31T09:30:01Z stdout F\n', '\n'],
  ['a partial record without content', '2026-01-31T09:30:01Z stdout P\n', ''],
  ['a partial record', record('one', 'stdout', 'P'), 'one'],
  ['a partial record with more tags', record('one', 'stdout', 'P:X'), 'one'],
  ['a complete record with more tags', record('one', 'stdout', 'F:P'), 'one\n'],
  ['a tag that begins with P', record('one', 'stdout', 'PP'), 'one\n'],
  ['a record without a tag', '2026-01-31T09:30:01Z stdout\n', ''],
  ['an unknown stream', record('one', 'stdin'), ''],
  ['an empty line', '\n', ''],
  ['a line with one word', 'nonsense\n', ''],
  ['content with bytes beyond ASCII', record('größe ✓'), 'größe ✓\n'],
];
it.each(records)('the log parser returns the right output for %s', (_what, input, expected) => {
  expect(parsed({}, input)).toBe(expected);
  expect(parsed({}, input + record('next'))).toBe(`${expected}next\n`);
});

it.each([
  ['All', 'out\nerr\nend\n'],
  ['Stdout', 'out\nend\n'],
  ['Stderr', 'err\n'],
] as const)('the log parser returns the records of the stream %s', (stream, expected) => {
  expect(parsed({ stream }, record('out') + record('err', 'stderr') + record('end'))).toBe(expected);
});

const since: [string, number, string][] = [
  ['before the first record', 0, 'one\ntwo\nearlier\n'],
  ['at the first record', 1500, 'one\ntwo\nearlier\n'],
  ['just after the first record', 1501, 'two\nearlier\n'],
  ['after the last record', 2501, ''],
];
it.each(since)(
  'a log since a time %s begins with the first record of that time or later, and has all records after it',
  (_what, sinceMillis, expected) => {
    const times = ['00:00:01.5Z', '00:00:02.5Z', '00:00:00.5Z'].map((time) => `1970-01-01T${time}`);
    const log = ['one', 'two', 'earlier'].map((text, i) => record(text, 'stdout', 'F', times[i]));
    expect(parsed({ sinceMillis }, log.join(''))).toBe(expected);
  },
);

it('a log since a time does not begin with a record whose time is malformed', () => {
  const log = record('odd', 'stdout', 'F', 'now') + record('one');
  expect(parsed({ sinceMillis: 0 }, log)).toBe('one\n');
  expect(parsed({}, log)).toBe('odd\none\n');
});

it('a record of another stream ends the search for the first record since a time', () => {
  const log =
    record('out', 'stdout', 'F', '1970-01-01T00:00:05Z') + record('err', 'stderr', 'F', '1970-01-01T00:00:01Z');
  expect(parsed({ stream: 'Stderr', sinceMillis: 2000 }, log)).toBe('err\n');
});

const times: [string, string][] = [
  ['2026-01-31T09:30:01Z', '2026-01-31T09:30:01.000000000Z'],
  ['2026-01-31T09:30:01.5Z', '2026-01-31T09:30:01.500000000Z'],
  ['2026-01-31T09:30:01.123456789Z', '2026-01-31T09:30:01.123456789Z'],
  ['2026-01-31T09:30:01.25+01:00', '2026-01-31T09:30:01.250000000+01:00'],
  ['2026-01-31T09:30:01-05:00', '2026-01-31T09:30:01.000000000-05:00'],
  ['short', 'short'],
];
it.each(times)('the time %s of a record is printed as %s with timestamps', (time, shown) => {
  expect(parsed({ timestamps: true }, record('one', 'stdout', 'F', time))).toBe(`${shown} one\n`);
});

it('a line that the runtime has split has one timestamp, even if records of the other stream are between its parts', () => {
  const shown = '2026-01-31T09:30:01.500000000Z';
  const log = [
    record('ab', 'stdout', 'P'),
    record('AB', 'stderr', 'P'),
    record('cd', 'stdout', 'P'),
    record('ef', 'stdout', 'F'),
    record('CD', 'stderr', 'F'),
    record('next'),
  ];
  expect(parsed({ timestamps: true }, log.join(''))).toBe(`${shown} ab${shown} ABcdef\nCD\n${shown} next\n`);
  expect(parsed({ timestamps: true, stream: 'Stderr' }, log.join(''))).toBe(`${shown} ABCD\n`);
});

it('the log parser returns the same output for every division of the log into chunks, whose memory is reused', () => {
  const log = Buffer.from(record('one', 'stdout', 'P') + record('two ✓') + record('three', 'stderr'));
  for (let first = 0; first <= log.length; first++)
    for (const second of [first, first + 1, log.length]) {
      const parse = createLogParser(ALL);
      let text = '';
      for (const bytes of [log.subarray(0, first), log.subarray(first, second), log.subarray(second)]) {
        const chunk = Buffer.from(bytes);
        text += parse(chunk);
        chunk.fill(0);
      }
      expect(text, `chunks end at ${first} and ${second}`).toBe('onetwo ✓\nthree\n');
    }
});

it('the log parser returns a record once it is complete, and nothing before', () => {
  const parse = createLogParser(ALL);
  expect(parse(Buffer.from('2026-01-31T09:30:01Z stdout F on')).toString()).toBe('');
  expect(parse(Buffer.from('e\n2026-01-31T09:30:01Z std')).toString()).toBe('one\n');
  expect(parse(Buffer.alloc(0)).toString()).toBe('');
  expect(parse(Buffer.from('out F two\n')).toString()).toBe('two\n');
});

it('the log parser drops a record that is longer than 1 MiB when it arrives in parts, with all of its parts', () => {
  const head = '2026-01-31T09:30:01Z stdout F ';
  const longest = head + 'x'.repeat(2 ** 20 - head.length);
  expect(parsed({}, longest, `\n${record('next')}`)).toBe(`${longest.slice(head.length)}\nnext\n`);
  expect(parsed({}, `${longest}x`, `\n${record('next')}`)).toBe('next\n');
  expect(parsed({}, record('before') + longest, 'x', `${head}part of it`, `\n${record('next')}`)).toBe(
    'before\nnext\n',
  );
  // Two consecutive records are too long: the parser drops both, but not the record after them.
  expect(parsed({}, `${longest}x`, `\n${longest}x`, `\n${record('next')}`)).toBe('next\n');
});
