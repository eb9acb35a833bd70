import { expect, test } from 'vitest';
import { podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { PodStatus } from '../../api/generated/types.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { PASSING_MILLIS } from './status-changes.ts';
import { createStatusWriter } from './status-writer.ts';

const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

function setUp() {
  const timers = createVirtualTimers();
  const stop = new AbortController();
  const phases: (string | undefined)[] = [];
  const writes: PromiseWithResolvers<void>[] = [];
  const ports = {
    timers,
    log: silentLog,
    writeStatus(_: unknown, status: PodStatus): Promise<void> {
      phases.push(status.phase);
      const write = Promise.withResolvers<void>();
      writes.push(write);
      return write.promise;
    },
  };
  const writer = createStatusWriter(ports, stop.signal);
  const put = (phase: string, more: PodStatus = {}): void => writer.write(podOf(), { ...more, phase });
  const flushed = async (): Promise<boolean> => {
    const pending = Symbol();
    return (await Promise.race([writer.flushed(), settled().then(() => pending)])) !== pending;
  };
  /** Writes a status that may wait if the previous status was also written by pass(). `podIP` distinguishes the statuses. */
  const pass = (podIP: string): void => put('Pending', { startTime: '2026-01-31T00:00:00Z', podIP });
  return { timers, stop, phases, writes, writer, put, pass, flushed };
}

test('statuses are written one at a time, the newest after the one under way, and equal ones once', async () => {
  const { phases, writes, writer, put, flushed } = setUp();
  await writer.flushed();
  put('Pending', { message: 'm', reason: 'r' });
  put('Running');
  put('Succeeded');
  put('Succeeded');
  expect([phases, await flushed()]).toEqual([['Pending'], false]);
  writes[0]?.resolve();
  await settled();
  expect(phases).toEqual(['Pending', 'Succeeded']);
  put('Succeeded');
  writes[1]?.resolve();
  await writer.flushed();
  put('Succeeded');
  expect(phases).toHaveLength(2);
  writer.write(podOf(), { reason: 'r', phase: 'Failed' });
  writes[2]?.resolve();
  await writer.flushed();
  writer.write(podOf(), { phase: 'Failed', reason: 'r' });
  expect(phases).toEqual(['Pending', 'Succeeded', 'Failed']);
});

test('a status that cannot be written is written again after 1 s, unless there is a newer one', async () => {
  const { timers, phases, writes, put, flushed } = setUp();
  put('Pending');
  writes[0]?.reject(new Error('down'));
  await settled();
  timers.advance(999);
  await settled();
  expect([phases, await flushed()]).toEqual([['Pending'], false]);
  timers.advance(1);
  await settled();
  expect(phases).toEqual(['Pending', 'Pending']);
  writes[1]?.reject(new Error('down'));
  await settled();
  put('Running');
  timers.advance(1000);
  await settled();
  expect(phases.slice(2)).toEqual(['Running']);
});

test('no status is written after the signal has aborted', async () => {
  const { stop, phases, writes, put, flushed } = setUp();
  put('Pending');
  put('Running');
  stop.abort();
  writes[0]?.resolve();
  await settled();
  expect([phases, await flushed()]).toEqual([['Pending'], true]);
});

async function setUpWaiting() {
  const parts = setUp();
  parts.pass('10.0.0.1');
  parts.writes[0]?.resolve();
  await settled();
  return parts;
}

test('a status that may wait is written with the next one', async () => {
  const { timers, phases, put, pass } = await setUpWaiting();
  pass('10.0.0.2');
  timers.advance(PASSING_MILLIS - 1);
  expect(phases).toEqual(['Pending']);
  put('Running');
  expect(phases).toEqual(['Pending', 'Running']);
  timers.advance(PASSING_MILLIS);
  expect(phases).toHaveLength(2);
});

test('a status that may wait is written when its time is over, although later ones may wait too', async () => {
  const { timers, phases, writes, pass, flushed } = await setUpWaiting();
  pass('10.0.0.2');
  timers.advance(PASSING_MILLIS - 1);
  pass('10.0.0.3');
  expect(phases).toHaveLength(1);
  timers.advance(1);
  expect(phases).toHaveLength(2);
  // A status that arrives during a write waits too.
  pass('10.0.0.4');
  writes[1]?.resolve();
  await settled();
  expect(phases).toHaveLength(2);
  timers.advance(PASSING_MILLIS);
  expect(phases).toHaveLength(3);
  writes[2]?.resolve();
  expect(await flushed()).toBe(true);
});

test('flushed() writes a status that waits, also one that arrives during the write', async () => {
  const { phases, writes, writer, pass } = await setUpWaiting();
  pass('10.0.0.2');
  const flushed = writer.flushed();
  expect(phases).toHaveLength(2);
  pass('10.0.0.3');
  writes[1]?.resolve();
  await settled();
  expect(phases).toHaveLength(3);
  writes[2]?.resolve();
  await flushed;
});

test('a status that waits and cannot be written is written again after 1 s', async () => {
  const { timers, phases, writes, pass } = await setUpWaiting();
  pass('10.0.0.2');
  timers.advance(PASSING_MILLIS);
  writes[1]?.reject(new Error('down'));
  await settled();
  pass('10.0.0.3');
  timers.advance(999);
  await settled();
  expect(phases).toHaveLength(2);
  timers.advance(1);
  await settled();
  expect(phases).toHaveLength(3);
});

test('a status that waits is not written after the signal has aborted', async () => {
  const { timers, stop, phases, pass, flushed } = await setUpWaiting();
  pass('10.0.0.2');
  stop.abort();
  timers.advance(PASSING_MILLIS);
  expect([phases, await flushed()]).toEqual([['Pending'], true]);
});
