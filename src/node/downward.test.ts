import { expect, test } from 'vitest';
import type { Pod } from '../api/generated/types.ts';
import { type DownwardFacts, fieldValue } from './downward.ts';

const facts: DownwardFacts = { nodeName: 'n', hostIps: [], podIps: [], allocatable: {} };

/** Both columns are what Go's strconv.Quote makes of it. */
test.each([
  ['plain é 日本 ✓ 😀', 'plain é 日本 ✓ 😀'],
  ['"\\\n\t\x07\x00\x7f', '\\"\\\\\\n\\t\\a\\x00\\x7f'],
  ['\u0080\u009f\u00a0\u00ad\u200b\ufeff\u2028', '\\u0080\\u009f\\u00a0\\u00ad\\u200b\\ufeff\\u2028'],
  ['\u{e0001}', '\\U000e0001'],
])('a value is quoted as Go does it: %j', (value, quoted) => {
  const pod = { metadata: { name: 'p', annotations: { b: value, a: '1' } } } as unknown as Pod;
  expect(fieldValue({ fieldPath: 'metadata.annotations' }, pod, facts)).toBe(`a="1"\nb="${quoted}"`);
});
