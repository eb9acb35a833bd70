import { expect, test } from 'vitest';
import type { CoreV1Event } from '../api/generated/types.ts';
import { EVENTS } from '../api/resources.ts';
import type { KubeObject } from '../machinery/meta.ts';
import { forbidden, serviceUnavailable } from '../machinery/status.ts';
import { silentLog } from '../platform/silent-log.ts';
import { createVirtualTimers } from '../platform/virtual-timers.ts';
import { createEventRecorder } from './events.ts';
import { registryBackend } from './registry-fixture.ts';
import { clientOf } from './typed-client.ts';

const pod: KubeObject = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'x', namespace: 'a', uid: 'u', resourceVersion: '7' },
};

async function setUp() {
  const timers = createVirtualTimers(Date.UTC(2026, 0, 31, 9, 30));
  const backend = await registryBackend({ timers });
  const recorder = createEventRecorder(clientOf(backend), {
    component: 'kubelet',
    host: 'n1',
    timers,
    log: silentLog,
  });
  const stored = () => backend.objects(EVENTS) as CoreV1Event[];
  return { backend, timers, recorder, stored };
}

test('an Event has the same fields as one from the kubelet of v1.33', async () => {
  const { recorder, stored, timers } = await setUp();
  recorder.event(pod, 'Normal', 'Pulled', 'Container image present', 'spec.initContainers{init}');
  await recorder.flushed();
  const { metadata, ...event } = stored()[0] as CoreV1Event;
  expect(metadata.name).toBe(`x.${(BigInt(timers.now()) * 1_000_000n).toString(16)}`);
  expect(metadata.namespace).toBe('a');
  expect(event).toEqual({
    apiVersion: 'v1',
    kind: 'Event',
    involvedObject: {
      kind: 'Pod',
      namespace: 'a',
      name: 'x',
      uid: 'u',
      apiVersion: 'v1',
      resourceVersion: '7',
      fieldPath: 'spec.initContainers{init}',
    },
    type: 'Normal',
    reason: 'Pulled',
    message: 'Container image present',
    source: { component: 'kubelet', host: 'n1' },
    firstTimestamp: '2026-01-31T09:30:00Z',
    lastTimestamp: '2026-01-31T09:30:00Z',
    count: 1,
    reportingComponent: 'kubelet',
    reportingInstance: 'n1',
  });
});

test('a repeated Event is patched with a higher count; a different message creates another Event', async () => {
  const { backend, recorder, stored, timers } = await setUp();
  recorder.event(pod, 'Warning', 'BackOff', 'one');
  timers.advance(5000);
  recorder.event({ ...pod, metadata: { ...pod.metadata, resourceVersion: '8' } }, 'Warning', 'BackOff', 'one');
  recorder.event(pod, 'Warning', 'BackOff', 'two');
  await recorder.flushed();
  expect(backend.calls.map((call) => call.split(' ')[0])).toEqual(['create', 'patch', 'create']);
  expect(
    stored().map((each) => [each.message, each.count, each.firstTimestamp?.slice(17), each.lastTimestamp?.slice(17)]),
  ).toEqual([
    ['one', 2, '00Z', '05Z'],
    ['two', 1, '05Z', '05Z'],
  ]);
  expect(new Set(stored().map((each) => each.metadata.name)).size).toBe(2);
});

test('Events that two components report about one object in the same millisecond are both stored', async () => {
  const { backend, recorder, stored, timers } = await setUp();
  const other = createEventRecorder(clientOf(backend), { component: 'default-scheduler', timers, log: silentLog });
  for (const each of [recorder, other]) each.event(pod, 'Warning', 'Failed', 'one');
  other.event(pod, 'Warning', 'Failed', 'one');
  await Promise.all([recorder.flushed(), other.flushed()]);
  expect(stored().map(({ source, count }) => [source?.component, count])).toEqual([
    ['kubelet', 1],
    ['default-scheduler', 2],
  ]);
});

test('a repeated Event that has expired is created again with its count continued', async () => {
  const { backend, recorder, stored } = await setUp();
  recorder.event(pod, 'Warning', 'BackOff', 'one');
  await recorder.flushed();
  await backend.remove(EVENTS, 'a', stored()[0]?.metadata.name as string);
  recorder.event(pod, 'Warning', 'BackOff', 'one');
  await recorder.flushed();
  expect(stored().map((each) => each.count)).toEqual([2]);
});

test('Events are retried in order while the server is unavailable, and an Event that the server rejects is dropped', async () => {
  const { backend, recorder, stored, timers } = await setUp();
  backend.failNext('create', serviceUnavailable('not yet'));
  recorder.event(pod, 'Normal', 'First', 'one');
  recorder.event(pod, 'Normal', 'Second', 'two');
  await new Promise(setImmediate);
  expect(backend.calls).toHaveLength(1);
  timers.advance(1000);
  await recorder.flushed();
  expect(stored().map((each) => each.reason)).toEqual(['First', 'Second']);

  backend.failNext('create', forbidden(EVENTS, '', 'the namespace is being terminated'));
  recorder.event(pod, 'Normal', 'Third', 'three');
  recorder.event(pod, 'Normal', 'Fourth', 'four');
  await recorder.flushed();
  expect(stored().map((each) => each.reason)).toEqual(['First', 'Second', 'Fourth']);
});

test('while 1000 Events are queued, further Events are dropped, without blocking the caller', async () => {
  const { backend, recorder, stored, timers } = await setUp();
  backend.failNext('create', serviceUnavailable('not yet'));
  for (let i = 0; i < 3000; i++) recorder.event(pod, 'Normal', 'Many', `${i}`);
  await new Promise(setImmediate);
  timers.advance(1000);
  await recorder.flushed();
  expect(stored()).toHaveLength(1001);
});

test('a message of more than 1024 bytes is cut between two characters', async () => {
  const { recorder, stored } = await setUp();
  const whole = 'a'.repeat(1024);
  for (const message of [whole, `${whole}b`, 'é'.repeat(1000), `a${'é'.repeat(1000)}`]) {
    recorder.event(pod, 'Warning', 'Unhealthy', message);
  }
  await recorder.flushed();
  expect(stored().map((each) => each.message)).toEqual([
    whole,
    `${'a'.repeat(1020)} ...`,
    `${'é'.repeat(510)} ...`,
    `a${'é'.repeat(509)} ...`,
  ]);
});

test('long messages that differ only beyond the cut count as one Event', async () => {
  const { recorder, stored } = await setUp();
  for (let i = 0; i < 3; i++) recorder.event(pod, 'Warning', 'Unhealthy', 'a'.repeat(2 ** 20) + i);
  await recorder.flushed();
  expect(stored().map((each) => each.count)).toEqual([3]);
});
