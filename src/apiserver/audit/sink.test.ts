import { expect, test } from 'vitest';
import { createMetrics, type Metrics, metricsText } from '../../platform/metrics.ts';
import { systemTimers } from '../../platform/node-js.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { recordingLog } from '../server-fixture.ts';
import type { AuditEvent } from './event.ts';
import { createSink, type Mode, type Output, type SinkOptions } from './sink.ts';

const eventOf = (auditID: string, more: Partial<AuditEvent> = {}): AuditEvent => ({
  auditID,
  level: 'Metadata',
  stage: 'ResponseComplete',
  requestURI: '/',
  verb: 'get',
  received: 0,
  at: 0,
  annotations: new Map(),
  ...more,
});
const idOf = (line: Buffer): string => JSON.parse(line.toString()).auditID;

interface Held extends Output {
  /** The IDs of the events that each call of append() got. */
  calls: string[][];
  /** Ends the oldest unfinished call of append(). */
  end(result: { written: number; error?: Error }): void;
}

function heldOutput(): Held {
  const ends: ((result: { written: number; error?: Error }) => void)[] = [];
  const calls: string[][] = [];
  return {
    calls,
    end: (result) => ends.shift()?.(result),
    append(lines) {
      calls.push(lines.map(idOf));
      return new Promise((resolve) => ends.push(resolve));
    },
    close: async () => void calls.push(['close']),
  };
}

function start(output: Output, mode: Mode, more: Partial<SinkOptions> = {}) {
  const metrics = createMetrics();
  const { log, errors } = recordingLog();
  const sink = createSink({ output, mode, format: 'json', metrics, timers: systemTimers(), log, ...more });
  return { sink, metrics, errors };
}
const counts = async (metrics: Metrics): Promise<string[]> =>
  metricsText(await metrics.families())
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));

test('in the mode batch no request waits, and events that arrive during a write are written together afterwards', async () => {
  const output = heldOutput();
  const { sink } = start(output, 'batch');
  for (const id of ['a', 'b', 'c']) expect(sink.add(eventOf(id))).toBeUndefined();
  expect(output.calls).toEqual([['a']]);
  output.end({ written: 1 });
  await expect.poll(() => output.calls).toEqual([['a'], ['b', 'c']]);
  const closed = sink.close();
  output.end({ written: 2 });
  await closed;
  expect(output.calls.at(-1)).toEqual(['close']);
});

test('in a blocking mode each request waits until its own event is written or lost', async () => {
  const output = heldOutput();
  const { sink, metrics, errors } = start(output, 'blocking');
  expect(sink.isStrict).toBe(false);
  const results = ['a', 'b', 'c', 'd'].map((id) => sink.add(eventOf(id)));
  output.end({ written: 1 });
  expect(await results[0]).toBe(true);
  output.end({ written: 1, error: new Error('ENOSPC: no space left on device') });
  expect(await Promise.all(results)).toEqual([true, true, false, false]);
  const next = sink.add(eventOf('e'));
  output.end({ written: 1 });
  expect(await next).toBe(true);
  expect(errors).toEqual([
    { message: 'audit events are lost', fields: { plugin: 'log', error: 'ENOSPC: no space left on device' } },
  ]);
  expect(await counts(metrics)).toEqual([
    'apiserver_audit_event_total 5',
    'apiserver_audit_error_total{plugin="log"} 2',
  ]);
});

test('the mode blocking-strict requires its events', () => {
  expect(start(heldOutput(), 'blocking-strict').sink.isStrict).toBe(true);
});

test('events beyond the limits of the queue are dropped and counted, and this is logged once', async () => {
  const { sink, metrics, errors } = start(heldOutput(), 'batch');
  for (let count = 0; count < 10_005; count++) sink.add(eventOf('x'));
  expect(errors).toEqual([
    {
      message: 'audit events are lost',
      fields: { plugin: 'buffered', error: 'too many audit events wait for the log' },
    },
  ]);
  // One event is being written, and 10,000 wait.
  expect(await counts(metrics)).toContain('apiserver_audit_error_total{plugin="buffered"} 4');
  const blocking = start(heldOutput(), 'blocking', { maxWaitingBytes: 1000 });
  const large = eventOf('x', { requestObject: JSON.stringify('x'.repeat(500)) });
  void blocking.sink.add(large);
  expect(await blocking.sink.add(large)).toBe(false);
});

test('an event that is too large is recorded without its objects or with short texts, and lost if it is still too large', async () => {
  const lines: Buffer[] = [];
  const output: Output = {
    append: async (given) => ({ written: lines.push(...given) && given.length }),
    close: async () => undefined,
  };
  const { sink, metrics } = start(output, 'blocking', { truncation: { maxEventBytes: 1000 } });
  const annotations = new Map([['a', 'A']]);
  await sink.add(eventOf('a', { requestObject: '{"a":1}', annotations }));
  await sink.add(eventOf('b', { requestObject: JSON.stringify('x'.repeat(500)), responseObject: '"y"', annotations }));
  await sink.add(eventOf('b', { requestObject: JSON.stringify('x'.repeat(900)), responseObject: '"y"', annotations }));
  const long = 'x'.repeat(1000);
  const user = { name: long, groups: [long], extra: { long: [long] } };
  const facts = { requestURI: `/${long}`, userAgent: long, user, impersonatedUser: user, objectRef: { name: long } };
  expect(await sink.add(eventOf('c', { ...facts, annotations: new Map([['long', long]]) }))).toBe(true);
  const events = lines.map((line) => JSON.parse(line.toString()));
  expect(events.map(({ requestObject }) => typeof requestObject)).toEqual([
    'object',
    'string',
    'undefined',
    'undefined',
  ]);
  expect(events[2]).toMatchObject({ annotations: { a: 'A', 'audit.k8s.io/truncated': 'true' } });
  expect(events[2]).not.toHaveProperty('responseObject');
  expect(annotations.size).toBe(1);
  expect(events[3]).toMatchObject({ requestURI: '/xxxxxx', userAgent: 'xxxxxxx', objectRef: { name: 'xxxxxxx' } });
  expect(await counts(metrics)).not.toContain('apiserver_audit_error_total{plugin="truncate"} 1');
  const small = start(output, 'blocking', { truncation: { maxEventBytes: 100 } });
  expect(await small.sink.add(eventOf('d'))).toBe(true);
  expect(await counts(small.metrics)).toContain('apiserver_audit_error_total{plugin="truncate"} 1');
});

test('an event with a long error is recorded with the beginning of the message, and without its details', async () => {
  const lines: Buffer[] = [];
  const output: Output = {
    append: async (given) => ({ written: lines.push(...given) && given.length }),
    close: async () => undefined,
  };
  const { sink, metrics } = start(output, 'blocking', { truncation: { maxEventBytes: 2000 } });
  const causes = Array.from({ length: 100 }, (_, index) => ({ field: `spec[${index}]`, message: 'wrong' }));
  const responseStatus = { code: 422, reason: 'Invalid' as const, message: '\u0001'.repeat(3000), details: { causes } };
  await sink.add(eventOf('a', { responseStatus }));
  expect(JSON.parse(String(lines[0])).responseStatus).toEqual({
    metadata: {},
    code: 422,
    reason: 'Invalid',
    message: '\u0001'.repeat(250),
  });
  expect(await counts(metrics)).not.toContain('apiserver_audit_error_total{plugin="truncate"} 1');
});

test('a failure is logged once while it lasts, and its end with the number of lost events', async () => {
  const { log } = recordingLog();
  const messages: unknown[] = [];
  const record = (message: string, fields?: object) => void messages.push([message, fields]);
  const timers = createVirtualTimers();
  const full = new Error('ENOSPC');
  let isFull = true;
  const output: Output = {
    append: async (lines) => (isFull ? { written: 0, error: full } : { written: lines.length }),
    close: async () => undefined,
  };
  const { sink } = start(output, 'blocking', { log: { ...log, error: record, info: record }, timers });
  for (isFull of [true, true, false, true, false]) await sink.add(eventOf('x'));
  expect(messages).toEqual([['audit events are lost', { plugin: 'log', error: 'ENOSPC' }]]);
  timers.advance(10_000);
  await sink.add(eventOf('x'));
  expect(messages.slice(1)).toEqual([['audit events are written again', { plugin: 'log', lost: 3 }]]);
});
