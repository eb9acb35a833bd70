/**
 * Tests YAML bodies that need far more time or memory than their length suggests. Each body may use its whole time limit, so these tests
 * run in `npm run test:long`.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  CONFIG_MAPS,
  LARGE,
  OTHERS_WAIT_MILLIS,
  repeatUpTo,
  startHostileServer,
  whileServingOthers,
} from './hostile-fixture.ts';
import type { Answer, TestServer } from './server-fixture.ts';

const head = 'apiVersion: v1\nkind: ConfigMap\n';

let at: TestServer;
beforeAll(async () => {
  at = await startHostileServer();
  await at.call('POST', CONFIG_MAPS, { body: '{"metadata":{"name":"one"},"data":{"a":"b"}}' });
});
afterAll(() => at[Symbol.asyncDispose]());

const apply = (body: string): Promise<Answer> =>
  at.call('PATCH', `${CONFIG_MAPS}/one?fieldManager=me`, {
    body,
    headers: { 'content-type': 'application/apply-patch+yaml' },
  });

test.each<[string, string, number]>([
  ['200,000 keys', `${head}data:\n${repeatUpTo(LARGE, (index) => `  k${index}: v\n`)}`, 413],
  ['200,000 merge keys', `a: &a {b: c}\nd:\n${repeatUpTo(LARGE, () => ' <<: *a\n')}`, 413],
  ['escapes that do not exist', `a: "${'\\q'.repeat(LARGE / 2)}"`, 413],
  ['empty lines', `${'\n'.repeat(LARGE)}a: b`, 413],
  ['nested flow mappings', `a: ${'{'.repeat(LARGE / 2)}${'}'.repeat(LARGE / 2)}`, 413],
  ['flow sequences that do not end', `a: ${'['.repeat(LARGE)}`, 413],
  [
    'hundreds of aliases of a long list',
    `a: &a [${'1,'.repeat(4000)}]\n${repeatUpTo(6000, (index) => `b${index}: *a\n`)}`,
    413,
  ],
  ['a duplicate key', `${head}data:\n${repeatUpTo(100_000, (index) => `  k${index}: v\n`)}  k7: w\n`, 400],
])('YAML with %s is refused while other clients are served', async (_what, body, code) => {
  const response = await whileServingOthers(at, () => apply(body));
  expect(response.json).toMatchObject({ code, reason: code === 413 ? 'RequestEntityTooLarge' : 'BadRequest' });
  expect(response.json.message).toMatch(
    code === 413
      ? /^Request entity too large: (the YAML takes more than (5 s|48 MiB) to read: send it as JSON, or in parts|limit is 3145728 bytes, with all aliases expanded)$/
      : /^error decoding patch: Map keys must be unique at line \d+, column 3$/,
  );
  expect(response.othersWaited).toBeLessThan(OTHERS_WAIT_MILLIS);
});
