import { expect, it } from 'vitest';
import { podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { Pod } from '../../api/generated/types.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createSlots } from './started-pods.ts';
import type { PodRecord } from './status-files.ts';

const recordOf = (name: string, uid = name): PodRecord => {
  const pod = podOf();
  return { file: `${name}.yaml`, pod: { ...pod, metadata: { ...pod.metadata, name, uid } } };
};
const web = recordOf('web');
const other = recordOf('other');

function slotsOf(stored: PodRecord[] = []) {
  const steps: string[] = [];
  const warnings: unknown[] = [];
  const applied: Pod[] = [];
  const failing = new Set<'write' | 'remove'>();
  const stop = new AbortController();
  const entries = new Map<string, PodRecord>();
  const step = (operation: 'write' | 'remove', uid: string | undefined): void => {
    steps.push(`${operation} ${uid}`);
    if (failing.has(operation)) throw new Error('the disk is full');
  };
  const slots = createSlots(entries, {
    records: {
      load: () => stored,
      write: ({ pod }) => step('write', pod.metadata.uid),
      remove: (uid) => step('remove', uid),
    },
    mirrors: { changed: (fullName) => void steps.push(`mirror ${fullName}`) },
    log: { ...silentLog, warn: (message, fields) => void warnings.push([message, fields]) },
    signal: stop.signal,
    apply(pod) {
      steps.push(`apply ${pod.metadata.uid}`);
      applied.push(pod);
    },
  });
  return { steps, warnings, applied, failing, stop, entries, slots };
}
const UNWRITTEN = [
  'the record of a static Pod cannot be written',
  { pod: 'default/web', error: 'the disk is full' },
] as const;

it('a Pod is recorded first, and passed to its worker only after the current work', async () => {
  const { slots, steps, entries, applied } = slotsOf();
  expect(slots.tryPut(web)).toBe(true);
  expect(steps).toEqual(['write web', 'mirror default/web']);
  expect([...entries]).toEqual([['default/web', web]]);
  await Promise.resolve();
  expect(steps).toEqual(['write web', 'mirror default/web', 'apply web']);
  expect(applied).toEqual([web.pod]);
});

it('tryPut() does not pass a Pod to its worker if its record cannot be written', async () => {
  const { slots, steps, entries, failing, warnings } = slotsOf();
  failing.add('write');
  expect(slots.tryPut(web)).toBe(false);
  await Promise.resolve();
  expect(steps).toEqual(['write web']);
  expect(entries.size).toBe(0);
  expect(warnings).toEqual([UNWRITTEN]);
});

it('putOrEnter() passes a Pod to its worker even if its record cannot be written', async () => {
  const { slots, steps, entries, failing, warnings } = slotsOf();
  failing.add('write');
  slots.putOrEnter(web);
  await Promise.resolve();
  expect(steps).toEqual(['write web', 'mirror default/web', 'apply web']);
  expect([...entries.values()]).toEqual([web]);
  expect(warnings).toEqual([UNWRITTEN]);
});

it('putOrEnter() passes a Pod that was recorded to its worker once', async () => {
  const { slots, steps } = slotsOf();
  slots.putOrEnter(web);
  await Promise.resolve();
  expect(steps).toEqual(['write web', 'mirror default/web', 'apply web']);
});

it('a Pod is not passed to its worker after the end of the engine', async () => {
  const { slots, stop, applied } = slotsOf();
  slots.tryPut(web);
  stop.abort();
  await Promise.resolve();
  expect(applied).toEqual([]);
});

it('a Pod that is removed before it was passed to its worker is not passed to it', async () => {
  const { slots, applied } = slotsOf();
  slots.tryPut(web);
  slots.remove(web);
  await Promise.resolve();
  expect(applied).toEqual([]);
});

it('the worker receives the newest Pod of a full name', async () => {
  const { slots, applied } = slotsOf();
  const next = recordOf('web', 'next');
  slots.tryPut(web);
  slots.tryPut(next);
  await Promise.resolve();
  expect(applied).toEqual([next.pod, next.pod]);
});

it('ofUid() returns the record of the Pod with this UID', () => {
  const { slots } = slotsOf();
  slots.tryPut(web);
  slots.tryPut(other);
  expect([slots.ofUid('other'), slots.ofUid('web'), slots.ofUid('gone')]).toEqual([other, web, undefined]);
});

it('a changed status is recorded before the worker receives it', async () => {
  const { slots, steps, applied, entries } = slotsOf();
  slots.tryPut(other);
  slots.tryPut(web);
  await Promise.resolve();
  steps.length = 0;
  slots.putStatus('web', { phase: 'Running' });
  await Promise.resolve();
  expect(steps).toEqual(['write web', 'mirror default/web', 'apply web']);
  expect(applied.at(-1)).toEqual({ ...web.pod, status: { phase: 'Running' } });
  expect(entries.get('default/web')).toEqual({ file: 'web.yaml', pod: applied.at(-1) });
  expect(entries.get('default/other')).toBe(other);
});

it.each([
  ['an unchanged status', 'web'],
  ['a status of an unknown Pod', 'gone'],
])('%s is neither recorded nor passed to the worker', async (_, uid) => {
  const { slots, steps } = slotsOf();
  slots.tryPut({ ...web, pod: { ...web.pod, status: { phase: 'Running' } } });
  await Promise.resolve();
  steps.length = 0;
  slots.putStatus(uid, { phase: 'Running' });
  await Promise.resolve();
  expect(steps).toEqual([]);
});

it('putStatus() throws if the record cannot be written, and keeps the previous status', async () => {
  const { slots, applied, entries, failing } = slotsOf();
  slots.tryPut(web);
  failing.add('write');
  expect(() => slots.putStatus('web', { phase: 'Running' })).toThrow('the disk is full');
  await Promise.resolve();
  expect(applied).toEqual([web.pod]);
  expect(entries.get('default/web')).toBe(web);
});

it.each([false, true])('restore() passes all recorded Pods to their workers; the disk is full: %s', async (isFull) => {
  const { slots, applied, failing } = slotsOf([web, other]);
  if (isFull) failing.add('write');
  slots.restore();
  await Promise.resolve();
  expect(applied).toEqual([web.pod, other.pod]);
});

it.each([false, true])('remove() removes the entry of a Pod; removal of the record fails: %s', (isBroken) => {
  const { slots, steps, entries, failing, warnings } = slotsOf();
  slots.tryPut(web);
  slots.tryPut(other);
  steps.length = 0;
  if (isBroken) failing.add('remove');
  slots.remove(web);
  expect(steps).toEqual(['remove web', 'mirror default/web']);
  expect([...entries.keys()]).toEqual(['default/other']);
  const fields = { podUid: 'web', error: 'the disk is full' };
  expect(warnings).toEqual(isBroken ? [['the record of a static Pod cannot be removed', fields]] : []);
});
