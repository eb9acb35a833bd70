import { expect, it } from 'vitest';
import type { Pod } from '../../api/generated/types.ts';
import { formatTime } from '../../machinery/time.ts';
import { asBeforeTermination, isShutDown, nextSteps, shortened, terminating } from './starts-and-ends.ts';
import type { PodRecord } from './status-files.ts';

const NOW = Date.UTC(2026, 0, 31);

const record = (file: string, uid: string, more: Partial<Pod> = {}): PodRecord => ({
  file,
  pod: { apiVersion: 'v1', kind: 'Pod', metadata: { name: file, uid }, ...more },
});
const deleted = { metadata: { name: 'a', uid: '1', deletionTimestamp: formatTime(NOW) } };
const shutDown = { status: { phase: 'Failed', reason: 'Terminated' } };

/** Returns the steps as `begin FILE UID` or `end FILE UID REASON`. */
function steps(slots: PodRecord[], wanted: PodRecord[], options: { begins?: boolean; unreadable?: string[] } = {}) {
  const byName = (records: PodRecord[]) => new Map(records.map((each) => [each.file, each]));
  const { begins = true, unreadable = [] } = options;
  const files = new Set(unreadable);
  return nextSteps(byName(slots), { pods: byName(wanted), unreadable: files }, begins).map(
    ({ kind, record: { file, pod }, reason = '' }) => `${kind} ${file} ${pod.metadata.uid} ${reason}`.trim(),
  );
}

it('new static Pods begin, but not while the node starts none', () => {
  expect(steps([], [record('a', '1')])).toEqual(['begin a 1']);
  expect(steps([], [record('a', '1')], { begins: false })).toEqual([]);
});

it('a static Pod ends when its manifest is removed, and is kept while the manifest cannot be read', () => {
  const running = [record('a', '1'), record('b', '2')];
  expect(steps(running, [record('a', '1')])).toEqual(['end b 2']);
  expect(steps(running, [record('a', '1')], { unreadable: ['b'] })).toEqual([]);
  expect(steps(running, [record('a', '1')], { unreadable: ['a'] })).toEqual(['end b 2']);
});

it('a static Pod whose manifest was changed is replaced, and its successor begins only once it has ended', () => {
  expect(steps([record('a', '1')], [record('a', '2')])).toEqual(['end a 1 Replaced']);
});

it('a static Pod that is terminating does not end again', () => {
  expect(steps([record('a', '1', deleted)], [])).toEqual([]);
  expect(steps([record('a', '1', deleted)], [record('a', '2')])).toEqual([]);
});

it('a static Pod that a shutdown ended is ended once the node starts Pods again', () => {
  const ended = [record('a', '1', shutDown)];
  expect(steps(ended, [record('a', '1')])).toEqual(['end a 1']);
  expect(steps(ended, [record('a', '1')], { begins: false })).toEqual([]);
  expect(steps(ended, [record('a', '2')])).toEqual(['end a 1 Replaced']);
});

it.each([
  ['Failed', 'Terminated', true],
  ['Failed', 'NodeShutdown', true],
  ['Failed', 'Evicted', false],
  ['Succeeded', 'Terminated', false],
])('a Pod in the phase %s with the reason %s counts as ended by a shutdown: %s', (phase, reason, expected) => {
  expect(isShutDown({ status: { phase, reason } })).toBe(expected);
});

it('a Pod without a status was not ended by a shutdown', () => {
  expect(isShutDown({})).toBe(false);
});

it.each([
  ['its grace period', 5, 5],
  ['at least one second', 0, 1],
  ['30 s by default', undefined, 30],
])('a static Pod terminates within %s', (_, given, seconds) => {
  const spec = { containers: [], ...(given !== undefined && { terminationGracePeriodSeconds: given }) };
  const { pod } = record('a', '1', { spec });
  expect(terminating(pod, NOW, undefined)).toEqual({
    ...pod,
    metadata: {
      ...pod.metadata,
      generation: 1,
      deletionTimestamp: formatTime(NOW + seconds * 1000),
      deletionGracePeriodSeconds: seconds,
    },
  });
});

it('the reason of a termination is a condition only of a static Pod with defer containers', () => {
  const deferContainers = [{ name: 'd', image: 'i' }];
  const withDefers = record('a', '1', { spec: { containers: [], deferContainers } }).pod;
  const condition = { type: 'DeletionReason', status: 'True', reason: 'Replaced', lastTransitionTime: formatTime(NOW) };
  expect(terminating(withDefers, NOW, 'Replaced').status?.conditions).toEqual([condition]);
  expect(terminating(withDefers, NOW, undefined).status).toBeUndefined();
  const without = record('a', '1', { spec: { containers: [], deferContainers: [] } }).pod;
  expect(terminating(without, NOW, 'Replaced').status).toBeUndefined();
});

it('a record before its termination has neither a status nor the changes of the termination', () => {
  const before = record('a', '1', { spec: { containers: [] } });
  const pod = { ...terminating(before.pod, NOW, 'Replaced'), status: { phase: 'Failed' } };
  expect(asBeforeTermination({ ...before, pod })).toEqual(before);
});

it('a record before its termination keeps the generation of a Pod that was not terminating', () => {
  const metadata = { name: 'a', uid: '1', generation: 3 };
  expect(asBeforeTermination(record('a', '1', { metadata })).pod.metadata).toEqual(metadata);
});

it('a given grace period replaces that of a static Pod, and is at least a second', () => {
  const { pod } = record('a', '1', { spec: { containers: [], terminationGracePeriodSeconds: 60 } });
  const graceOf = (given?: number) => terminating(pod, NOW, undefined, given).metadata.deletionGracePeriodSeconds;
  expect([graceOf(), graceOf(5), graceOf(0), graceOf(90)]).toEqual([60, 5, 1, 90]);
});

it('the end of a terminating static Pod is moved earlier, never later', () => {
  const { pod } = record('a', '1', { spec: { containers: [], terminationGracePeriodSeconds: 60 } });
  const ending = terminating(pod, NOW, undefined);
  expect(shortened(pod, NOW, 1)).toBeUndefined();
  expect(shortened(ending, NOW + 10_000, undefined)).toBeUndefined();
  expect(shortened(ending, NOW + 10_000, 60)).toBeUndefined();
  expect(shortened(ending, NOW + 10_000, 5)?.metadata).toEqual({
    ...ending.metadata,
    deletionTimestamp: formatTime(NOW + 15_000),
    deletionGracePeriodSeconds: 5,
  });
});
