/** Tests JSON patches that need far more work than their length suggests. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CONFIG_MAPS, OTHERS_WAIT_MILLIS, startHostileServer, whileServingOthers } from './hostile-fixture.ts';
import type { TestServer } from './server-fixture.ts';

let at: TestServer;
beforeAll(async () => {
  at = await startHostileServer();
  const data = { text: 'x'.repeat(1000), other: 'y' };
  await at.call('POST', CONFIG_MAPS, { body: JSON.stringify({ metadata: { name: 'one' }, data }) });
});
afterAll(() => at[Symbol.asyncDispose]());

type Operation = { op: string; path: string; from?: string; value?: unknown };
const many = (count: number, operation: (index: number) => Operation): Operation[] =>
  Array.from({ length: count }, (_, index) => operation(index));
const add = (path: string, value: unknown): Operation => ({ op: 'add', path, value });
const ones = (count: number): number[] => Array.from({ length: count }, () => 1);

/** Each operation doubles the size of the data. */
const doubling = many(40, (index) => ({ op: 'copy', from: '/data', path: `/data/c${index}` }));
const elements = 400_000;

test.each<[string, Operation[], number, RegExp]>([
  [
    'copies that double the content',
    doubling,
    413,
    /^Request entity too large: Unable to complete the copy, the accumulated size increase of copy is \d+, exceeding the limit 3145728$/,
  ],
  [
    '9,999 copies of a large text',
    [
      add('/data/large', 'x'.repeat(1_000_000)),
      ...many(9999, (index) => ({ op: 'copy', from: '/data/large', path: `/data/${index}` })),
    ],
    413,
    /Unable to complete the copy/,
  ],
  [
    '10,001 operations',
    many(10_001, () => add('/data/a', 'b')),
    413,
    /^Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001$/,
  ],
  [
    '9,999 insertions at the start of a long list',
    [add('/data/list', ones(elements)), ...many(9999, () => add('/data/list/0', 1))],
    413,
    /^Request entity too large: the patch moves more than 50000000 elements of lists$/,
  ],
  [
    '9,999 moves in a large object',
    [
      add('/data/large', ones(elements)),
      ...many(9999, (index) => ({ op: 'move', from: '/data/text', path: index % 2 ? '/data/text' : '/data/other' })),
    ],
    422,
    /rejected our request/,
  ],
  [
    'a test that fails in a deep and wide object',
    [
      add('/data/deep', JSON.parse(`${'['.repeat(900)}${JSON.stringify(ones(elements))}${']'.repeat(900)}`)),
      { op: 'test', path: '/data/text', value: 'z' },
    ],
    422,
    /rejected our request/,
  ],
  [
    'a test that compares two long lists without a common element',
    [add('/data/list', ones(elements)), { op: 'test', path: '/data/list', value: ones(elements).map(() => 2) }],
    422,
    /rejected our request/,
  ],
  [
    'copies that double the levels',
    [
      add('/data', { a: {} }),
      ...many(14, (index) => ({ op: 'copy', from: '/data', path: `/data${'/a'.repeat(2 ** index)}` })),
    ],
    422,
    /rejected our request/,
  ],
])('a JSON patch with %s is refused while other clients are served', async (_what, operations, code, message) => {
  const before = process.memoryUsage().rss;
  const { json, othersWaited } = await whileServingOthers(at, () =>
    at.call('PATCH', `${CONFIG_MAPS}/one`, {
      body: JSON.stringify(operations),
      headers: { 'content-type': 'application/json-patch+json' },
    }),
  );
  expect(json).toMatchObject({ code, reason: code === 413 ? 'RequestEntityTooLarge' : 'Invalid' });
  expect(json.message).toMatch(message);
  expect(othersWaited).toBeLessThan(OTHERS_WAIT_MILLIS);
  expect(at.errors).toEqual([]);
  expect(process.memoryUsage().rss - before).toBeLessThan(640 * 2 ** 20);
});
