import { expect, test, vi } from 'vitest';
import type { Pod, PodRecord } from '../../api/generated/types.ts';
import { POD_RECORDS } from '../../api/lifepod.io/v1/pod-record/index.ts';
import { type RegistryBackend, registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import type { Transition } from '../../lifecycle/types.ts';
import { badRequest, serviceUnavailable } from '../../machinery/status.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { createPodRecorder } from './recorder.ts';

const pod: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'a', uid: 'u', creationTimestamp: '2026-01-31T00:00:00Z' },
  spec: { containers: [] },
};
const started: Pod = { ...pod, status: { startTime: '2026-01-31T00:00:00Z' } };
const step = (key: string, more: Partial<Transition> = {}): Transition => ({
  key,
  at: 1_700_000_000_123,
  type: 'T',
  ...more,
});

/** A second recorder on the same backend represents a new agent after a crash. */
function agent(backend: RegistryBackend) {
  const stop = new AbortController();
  const timers = createVirtualTimers();
  const options = { client: clientOf(backend), nodeName: 'n', timers, log: silentLog, signal: stop.signal };
  const recorder = createPodRecorder(options);
  return { recorder, stop, timers };
}
const records = (backend: RegistryBackend): PodRecord[] => backend.objects(POD_RECORDS) as PodRecord[];
const keys = (backend: RegistryBackend): string[] =>
  records(backend).flatMap((each) => each.transitions.map(({ key }) => key));
const writes = ({ calls }: RegistryBackend): string[] => calls.filter((call) => /^(create|update)/.test(call));

test('the recorder combines steps that are reported during a write into the next write', async () => {
  const backend = await registryBackend();
  const { recorder } = agent(backend);
  recorder.record(pod, [step('one'), step('two')]);
  for (const key of ['three', 'four', 'five']) recorder.record(pod, [step(key)]);
  await recorder.flushed();
  recorder.record(pod, [step('six', { deadline: 1_700_000_001_000, exitCode: 3 })]);
  const { update } = backend;
  const asked = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  backend.update = async (...call) => {
    asked.resolve();
    await goOn.promise;
    return update(...call);
  };
  await asked.promise;
  for (const key of ['seven', 'eight']) recorder.record(pod, [step(key)]);
  goOn.resolve();
  await recorder.flushed();
  expect(keys(backend)).toEqual(['one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight']);
  expect(writes(backend)).toEqual(['create podrecords a/u.0', ...Array<string>(2).fill('update podrecords a/u.0')]);
  expect(records(backend)[0]).toMatchObject({ podName: 'web', podUID: 'u', nodeName: 'n', metadata: { name: 'u.0' } });
  expect(records(backend)[0]?.transitions[5]).toEqual({
    key: 'six',
    at: '2023-11-14T22:13:20.123000Z',
    type: 'T',
    exitCode: 3,
    deadline: '2023-11-14T22:13:21.000000Z',
  });
});

test('the recorder writes a repeated step and a repeated result once', async () => {
  const backend = await registryBackend();
  const { recorder } = agent(backend);
  const turns = ['ProbePassing', 'ProbeFailing', 'ProbeFailing', 'ProbePassing'];
  recorder.record(pod, [step('x'), ...turns.map((type, at) => step(`p@${at}`, { type }))]);
  await recorder.flushed();
  recorder.record(pod, [step('x'), step('p@9', { type: 'ProbePassing' })]);
  await recorder.flushed();
  expect(keys(backend)).toEqual(['x', 'p@0', 'p@1', 'p@3']);
  recorder.record(pod, [step('y')]);
  await recorder.flushed();
  expect(keys(backend)).toContain('y');
});

test.each(['create podrecords', 'update podrecords', 'get podrecords'])(
  'the recorder retries a %s that failed, and loses no step',
  async (call) => {
    const backend = await registryBackend();
    const { recorder, timers } = agent(backend);
    for (let i = 0; i < 3; i++) backend.failNext(call, serviceUnavailable('not now'));
    recorder.record(pod, [step('one')]);
    if (call.startsWith('update')) await recorder.flushed();
    recorder.record(pod, [step('two')]);
    for (let tries = 0; tries < 4; tries++) {
      recorder.record(pod, [step(`more-${tries}`)]);
      await new Promise(setImmediate);
      timers.advance(1000);
    }
    while (keys(backend).at(-1) !== 'more-3') {
      await new Promise(setImmediate);
      timers.advance(1000);
    }
    await recorder.flushed();
    expect(keys(backend)).toEqual(['one', 'two', 'more-0', 'more-1', 'more-2', 'more-3']);
  },
);

test('a new agent continues the record of the previous one', async () => {
  const backend = await registryBackend();
  const first = agent(backend);
  first.recorder.record(pod, [step('one'), step('p@1', { type: 'ProbePassing' })]);
  await first.recorder.flushed();
  first.stop.abort();
  const second = agent(backend);
  second.recorder.record(started, [step('one'), step('two'), step('p@5', { type: 'ProbePassing' })]);
  await second.recorder.flushed();
  expect(keys(backend)).toEqual(['one', 'p@1', 'two']);
  expect(records(backend)).toHaveLength(1);
});

test('the recorder does not repeat a write whose response was lost', async () => {
  const backend = await registryBackend();
  const create = backend.create;
  let lost = false;
  backend.create = async (...call) => {
    const answer = await create(...call);
    if (!lost) {
      lost = true;
      throw serviceUnavailable('the connection is lost');
    }
    return answer;
  };
  const { recorder, timers } = agent(backend);
  recorder.record(pod, [step('one')]);
  await vi.waitFor(() => expect(lost).toBe(true));
  recorder.record(pod, [step('two')]);
  timers.advance(1000);
  await recorder.flushed();
  expect(keys(backend)).toEqual(['one', 'two']);
});

test('the recorder splits a long record into parts, which a new agent reads even if the first ones were deleted', async () => {
  const backend = await registryBackend();
  const first = agent(backend);
  const message = 'x'.repeat(1000);
  const steps = Array.from({ length: 50 }, (_, i) => step(`step-${i}`, { message }));
  for (const each of steps) first.recorder.record(pod, [each]);
  await first.recorder.flushed();
  expect(keys(backend)).toEqual(steps.map(({ key }) => key));
  const parts = records(backend);
  expect(parts.map(({ metadata }) => metadata.name)).toEqual(['u.0', 'u.1', 'u.2', 'u.3']);
  for (const part of parts) expect(JSON.stringify(part.transitions).length).toBeLessThan(17 * 1024);

  await backend.remove(POD_RECORDS, 'a', 'u.0');
  const kept = keys(backend);
  const second = agent(backend);
  second.recorder.record(started, [...steps.slice(-20), step('new')]);
  await second.recorder.flushed();
  expect(keys(backend)).toEqual([...kept, 'new']);
});

test('the recorder creates a part again that was deleted as too old', async () => {
  const backend = await registryBackend();
  const { recorder } = agent(backend);
  recorder.record(pod, [step('one')]);
  await recorder.flushed();
  await backend.remove(POD_RECORDS, 'a', 'u.0');
  recorder.record(pod, [step('two')]);
  await recorder.flushed();
  expect(keys(backend)).toEqual(['one', 'two']);
});

test('written() waits until the steps are written, but not for an API that cannot write', async () => {
  const backend = await registryBackend();
  const { recorder, timers } = agent(backend);
  expect(recorder.written('u')).toBeUndefined();
  recorder.record(pod, [step('one')]);
  await recorder.written('u');
  expect(keys(backend)).toEqual(['one']);
  await recorder.flushed();
  expect(recorder.written('u')).toBeUndefined();

  recorder.record(pod, [step('early')]);
  const early = recorder.written('u');
  const { update } = backend;
  const held = Promise.withResolvers<void>();
  backend.update = async (...call) => {
    recorder.record(pod, [step('late')]);
    backend.update = async (...next) => {
      await held.promise;
      return update(...next);
    };
    return update(...call);
  };
  await early;
  expect(keys(backend)).toEqual(['one', 'early']);
  held.resolve();
  await recorder.flushed();
  backend.update = update;

  backend.failNext('update podrecords', serviceUnavailable('the disk is full'));
  recorder.record(pod, [step('two')]);
  await recorder.written('u');
  expect(keys(backend)).toEqual(['one', 'early', 'late']);
  recorder.record(pod, [step('three')]);
  expect(recorder.written('u')).toBeUndefined();
  await new Promise(setImmediate);
  timers.advance(1000);
  await recorder.flushed();
  recorder.record(pod, [step('four')]);
  await recorder.written('u');
  expect(keys(backend)).toEqual(['one', 'early', 'late', 'two', 'three', 'four']);
});

test('the recorder gives up steps that the API rejects permanently, and written() does not wait for them', async () => {
  const backend = await registryBackend();
  const { recorder } = agent(backend);
  backend.failNext('create podrecords', badRequest('never'));
  recorder.record(pod, [step('one')]);
  await recorder.flushed();
  expect(keys(backend)).toEqual([]);
});

test('if reading the existing record is given up, the recorder keeps that record and reads it again for the next step', async () => {
  const backend = await registryBackend();
  const previous = agent(backend);
  previous.recorder.record(pod, [step('one')]);
  await previous.recorder.flushed();
  const { recorder } = agent(backend);
  backend.failNext('get podrecords', badRequest('never'));
  recorder.record(started, [step('two')]);
  await recorder.flushed();
  expect(keys(backend)).toEqual(['one']);
  recorder.record(started, [step('one'), step('three')]);
  await recorder.flushed();
  expect(keys(backend)).toEqual(['one', 'three']);
});

test('at the end of the agent, the recorder writes reported steps once and gives up those that fail', async () => {
  const backend = await registryBackend();
  const { recorder, stop } = agent(backend);
  recorder.record(pod, [step('one')]);
  stop.abort();
  await recorder.flushed();
  expect(keys(backend)).toEqual(['one']);
  backend.failNext('update podrecords', serviceUnavailable('gone'));
  recorder.record(pod, [step('two')]);
  await recorder.flushed();
  expect(keys(backend)).toEqual(['one']);
});

test('the recorder forgets a released Pod and reads its record again when a new step is reported', async () => {
  const backend = await registryBackend();
  const { recorder } = agent(backend);
  recorder.record(pod, [step('one')]);
  recorder.release('u');
  await recorder.flushed();
  recorder.record(started, [step('one'), step('Gone')]);
  recorder.release('u');
  await recorder.flushed();
  expect(keys(backend)).toEqual(['one', 'Gone']);
  expect(backend.calls.filter((call) => call === 'get podrecords a/u.0')).toHaveLength(2);
});

const secondLife: Pod = { ...pod, metadata: { ...pod.metadata, creationTimestamp: '2026-01-31T01:00:00Z' } };
const createdOf = ({ metadata }: Pod): Transition => ({
  key: 'Created',
  type: 'Created',
  at: Date.parse(metadata.creationTimestamp ?? ''),
});
const byPart = (backend: RegistryBackend): Record<string, string[]> =>
  Object.fromEntries(
    records(backend).map(({ metadata, transitions }) => [metadata.name, transitions.map(({ key }) => key)]),
  );

test('the record of a Pod with the UID of an earlier one begins with a new part, also after a crash at any write', async () => {
  const backend = await registryBackend();
  const first = agent(backend);
  first.recorder.record(pod, [createdOf(pod), step('Started/a/0'), step('Gone')]);
  await first.recorder.flushed();
  const expected: Record<string, string[]> = { 'u.0': ['Created', 'Started/a/0', 'Gone'] };
  const steps = [createdOf(secondLife), step('Started/a/0'), step('Gone')];
  for (const [index] of steps.entries()) {
    const { recorder, stop } = agent(backend);
    recorder.record(secondLife, steps.slice(0, index + 1));
    await recorder.flushed();
    stop.abort();
    expected['u.1'] = steps.slice(0, index + 1).map(({ key }) => key);
    expect(byPart(backend)).toEqual(expected);
  }
});

test('a Pod begins its own record while the last steps of an earlier Pod with its UID are being written', async () => {
  const backend = await registryBackend();
  const { recorder, timers } = agent(backend);
  recorder.record(pod, [createdOf(pod)]);
  await recorder.flushed();
  const failed = Promise.withResolvers<void>();
  const { update } = backend;
  backend.update = async () => {
    backend.update = update;
    failed.resolve();
    throw serviceUnavailable('not now');
  };
  recorder.record(pod, [step('Gone')]);
  recorder.release('u');
  await failed.promise;
  recorder.record(secondLife, [createdOf(secondLife), step('Started/a/0')]);
  expect(recorder.written('u')).toBeUndefined();
  await new Promise(setImmediate);
  timers.advance(1000);
  await recorder.flushed();
  recorder.record(secondLife, [step('Gone')]);
  recorder.release('u');
  await recorder.flushed();
  expect(byPart(backend)).toEqual({ 'u.0': ['Created', 'Gone'], 'u.1': ['Created', 'Started/a/0', 'Gone'] });
});

test('written() does not wait for an API that does not answer', async () => {
  const backend = await registryBackend();
  const { recorder, timers } = agent(backend);
  const asked = Promise.withResolvers<void>();
  backend.create = () => {
    asked.resolve();
    return new Promise(() => undefined);
  };
  recorder.record(pod, [step('one')]);
  const written = recorder.written('u');
  expect(written).toBeDefined();
  await asked.promise;
  timers.advance(1000);
  await written;
  expect(recorder.written('u')).toBeUndefined();
});
