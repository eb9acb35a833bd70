import { expect, test } from 'vitest';
import { podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { ContainerStatus, Pod, PodStatus, PodTermination } from '../../api/generated/types.ts';
import { type DownwardFacts, fieldValue } from './downward.ts';

const facts: DownwardFacts = { nodeName: 'n', hostIps: [], podIps: [], allocatable: {} };

/** Each row contains an input of Go's strconv.Quote and its output without the quotes. */
test.each([
  ['plain é 日本 ✓ 😀', 'plain é 日本 ✓ 😀'],
  ['"\\\n\t\x07\x00\x7f', '\\"\\\\\\n\\t\\a\\x00\\x7f'],
  ['\u0080\u009f\u00a0\u00ad\u200b\ufeff\u2028', '\\u0080\\u009f\\u00a0\\u00ad\\u200b\\ufeff\\u2028'],
  ['\u{e0001}', '\\U000e0001'],
])('the downward API quotes the annotation value %j like Go', (value, quoted) => {
  const pod = { metadata: { name: 'p', annotations: { b: value, a: '1' } } } as unknown as Pod;
  expect(fieldValue({ fieldPath: 'metadata.annotations' }, pod, facts)).toBe(`a="1"\nb="${quoted}"`);
});

const ended: ContainerStatus = {
  name: 'app',
  image: 'i',
  imageID: '',
  ready: false,
  restartCount: 2,
  state: { terminated: { exitCode: 137 } },
};
const termination: PodTermination = {
  reason: 'ScaledDown',
  startedAt: '2026-01-31T00:00:00.000000Z',
  deadline: '2026-01-31T00:00:30.500000Z',
  containers: [{ name: 'app', kind: 'app', exitCode: 137, reason: 'OOMKilled', restartCount: 2 }],
};

test.each([
  ['reason', 'ScaledDown'],
  ['deadline', '2026-01-31T00:00:30.500000Z'],
  ['containers', '[{"name":"app","kind":"app","exitCode":137,"reason":"OOMKilled","restartCount":2}]'],
  ['exitCodes', '{"app":137}'],
])('status.termination.%s is empty before the termination starts and has a value afterwards', (field, text) => {
  const show = (status: PodStatus): string =>
    fieldValue({ fieldPath: `status.termination.${field}` }, podOf({}, status), facts);
  expect(show({ containerStatuses: [ended] })).toBe('');
  expect(show({ containerStatuses: [ended], termination })).toBe(text);
});

test('status.termination.containers is an empty list if no container has ended', () => {
  const { containers: _, ...begun } = termination;
  const pod = podOf({}, { termination: begun });
  expect(fieldValue({ fieldPath: 'status.termination.containers' }, pod, facts)).toBe('[]');
});
