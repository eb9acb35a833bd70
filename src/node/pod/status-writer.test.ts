import { expect, test } from 'vitest';
import { podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { PodStatus } from '../../api/generated/types.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { createStatusWriter } from './status-writer.ts';

const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/** Creates a writer. The test resolves or rejects each write. `phases`: the phases of the written statuses. */
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
    await settled();
    return (await Promise.race([writer.flushed(), Promise.resolve(pending)])) !== pending;
  };
  return { timers, stop, phases, writes, writer, put, flushed };
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
