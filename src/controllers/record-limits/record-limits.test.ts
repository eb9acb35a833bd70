import { afterEach, expect, test } from 'vitest';
import { MIRROR_ANNOTATION } from '../../api/core/v1/pod/mirror.ts';
import type { Pod, PodRecord } from '../../api/generated/types.ts';
import { POD_RECORDS, recordName } from '../../api/lifepod.io/v1/pod-record/index.ts';
import { PODS } from '../../api/resources.ts';
import { registryBackend, withInformers } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { serviceUnavailable } from '../../machinery/status.ts';
import { formatMicroTime } from '../../machinery/time.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { type RecordLimits, startRecordLimits } from './record-limits.ts';

const HOUR = 60 * 60 * 1000;
const MINUTE = 60 * 1000;
const RECORD = { apiVersion: 'lifepod.io/v1', kind: 'PodRecord' };
const stops: AbortController[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop.abort();
});

/** Objects that a test creates before it calls start() are 100 hours old when the controller starts. */
async function setUp(limits: Partial<RecordLimits> = {}) {
  const begin = Date.UTC(2026, 0, 31);
  const timers = createVirtualTimers(begin - 100 * HOUR);
  const backend = await registryBackend({ timers });
  const uids = new Map<string, string>();
  const pending = new Set<() => void>();
  const counted: typeof timers = {
    ...timers,
    at(time, callback) {
      const timer = timers.at(time, () => {
        pending.delete(callback);
        callback();
      });
      pending.add(callback);
      return {
        cancel() {
          pending.delete(callback);
          timer.cancel();
        },
      };
    },
  };
  const stop = new AbortController();
  stops.push(stop);
  const client = clientOf(backend);
  return {
    backend,
    timers,
    async start(): Promise<void> {
      timers.advance(begin - timers.now());
      await startRecordLimits(
        withInformers({
          client,
          timers: counted,
          log: silentLog,
          signal: stop.signal,
          limits: { ageMillis: 24 * HOUR, bytes: 2 ** 20, ...limits },
        }),
      );
    },
    /** The Pod need not exist. The record has one step, `at` milliseconds after the start. */
    async record(podName: string, part: number, at: number, characters = 10): Promise<void> {
      const step = { key: 'k', type: 'T', at: formatMicroTime(begin + at), message: 'x'.repeat(characters) };
      const podUID = uids.get(podName) ?? podName;
      const metadata = { name: recordName(podUID, part), namespace: 'a' };
      const record: PodRecord = { ...RECORD, metadata, podName, podUID, transitions: [step] };
      await backend.set(POD_RECORDS, record);
    },
    async pod(name: string, annotations = {}): Promise<void> {
      const metadata = { name, namespace: 'a', annotations };
      const spec = { nodeName: 'n', containers: [{ name: 'app', image: 'x' }] };
      const { metadata: stored } = await backend.set<Pod>(PODS, { apiVersion: 'v1', kind: 'Pod', metadata, spec });
      uids.set(name, stored.uid ?? '');
    },
    /** Returns the stored parts as `podName.part`. */
    left: (): string[] =>
      (backend.objects(POD_RECORDS) as PodRecord[])
        .map(({ metadata, podName, podUID }) => `${podName}${metadata.name.slice(podUID.length)}`)
        .sort(),
    stop: () => stop.abort(),
    pendingTimers: () => pending.size,
    settled: async (): Promise<void> => {
      for (let i = 0; i < 100; i++) await new Promise(setImmediate);
    },
  };
}

test('all parts of a record are deleted once its last step is too old, unless its Pod still exists', async () => {
  const { start, record, pod, left, timers, settled } = await setUp();
  await pod('living');
  await pod('mirror', { [MIRROR_ANNOTATION]: 'static' });
  await record('living', 0, -100 * HOUR);
  await record('static', 0, -100 * HOUR);
  await record('old', 0, -30 * HOUR);
  await record('recent', 0, -30 * HOUR);
  await record('recent', 1, -HOUR);
  await start();
  expect(left()).toEqual(['living.0', 'recent.0', 'recent.1', 'static.0']);
  timers.advance(22 * HOUR);
  await settled();
  expect(left()).toEqual(['living.0', 'recent.0', 'recent.1', 'static.0']);
  timers.advance(HOUR + MINUTE);
  await settled();
  expect(left()).toEqual(['living.0', 'static.0']);
});

test('a record can expire only once its Pod has been deleted', async () => {
  const { start, record, pod, left, timers, settled, backend } = await setUp({ ageMillis: HOUR });
  await pod('u');
  await record('u', 0, 0);
  await start();
  timers.advance(10 * HOUR);
  await settled();
  expect(left()).toEqual(['u.0']);
  await record('u', 0, 10 * HOUR);
  await backend.remove(PODS, 'a', 'u');
  timers.advance(HOUR - 1);
  await settled();
  expect(left()).toEqual(['u.0']);
  timers.advance(MINUTE + 1);
  await settled();
  expect(left()).toEqual([]);
});

test('too large records: the oldest parts of deleted Pods are deleted first, then old parts of existing Pods, never the newest', async () => {
  const { start, record, pod, left, timers, settled } = await setUp({ bytes: 100_000 });
  await pod('living');
  for (let part = 0; part < 4; part++) await record('living', part, -50 * HOUR + part, 15_000);
  for (const [index, uid] of ['c', 'a', 'b'].entries()) await record(uid, 0, -10 * HOUR + index, 10_000);
  await start();
  expect(left()).toHaveLength(7);
  await record('d', 0, 0, 10_000);
  timers.advance(0);
  await settled();
  // The controller deletes parts until at most nine tenths of the limit (90 kB) remain. The deletion of c.0 alone is not sufficient, so a.0
  // is deleted too.
  expect(left()).toEqual(['b.0', 'd.0', 'living.0', 'living.1', 'living.2', 'living.3']);
  await record('living', 4, 1, 60_000);
  timers.advance(0);
  await settled();
  expect(left()).toEqual(['living.3', 'living.4']);
});

test('a part that is written again counts once, with its last size', async () => {
  const { start, record, left, timers, settled } = await setUp({ bytes: 100_000 });
  await record('a', 0, 0, 40_000);
  await record('b', 0, 1, 40_000);
  await start();
  for (const characters of [40_000, 40_001, 30_000]) await record('a', 0, 0, characters);
  await record('b', 0, 1, 60_000);
  timers.advance(MINUTE);
  await settled();
  expect(left()).toEqual(['a.0', 'b.0']);
});

test('the newest part of the record of an existing Pod is kept even if it alone is too large', async () => {
  const { start, record, pod, left, timers, settled } = await setUp({ bytes: 1000 });
  await pod('living');
  await record('living', 0, 0, 5000);
  await start();
  timers.advance(MINUTE);
  await settled();
  expect(left()).toEqual(['living.0']);
});

test('a failed deletion is retried a minute later', async () => {
  const { start, record, left, timers, settled, backend } = await setUp();
  await record('old', 0, -30 * HOUR);
  backend.failNext('delete podrecords', serviceUnavailable('not now'));
  await start();
  expect(left()).toEqual(['old.0']);
  timers.advance(MINUTE);
  await settled();
  expect(left()).toEqual([]);
});

test('a stopped controller leaves no timer, which would keep the process alive', async () => {
  const { start, record, pod, stop, pendingTimers } = await setUp();
  await pod('living');
  await record('living', 0, -HOUR);
  await record('recent', 0, -HOUR);
  await start();
  expect(pendingTimers()).toBe(1);
  stop();
  expect(pendingTimers()).toBe(0);
});
