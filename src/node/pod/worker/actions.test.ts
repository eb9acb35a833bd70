import { expect, it } from 'vitest';
import { podOf } from '../../../api/core/v1/pod/pod-fixtures.ts';
import type { Action, ContainerState } from '../../../lifecycle/types.ts';
import { silentLog } from '../../../platform/silent-log.ts';
import { createVirtualTimers } from '../../../platform/virtual-timers.ts';
import { OutcomeUnknownError } from '../../../runtime/runtime.ts';
import { createWorkerActions } from './actions.ts';
import type { Outcome, WorkerPorts } from './ports.ts';
import { createWorkerFlights } from './running-actions.ts';
import { initialState } from './state.ts';

const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
const image = { container: 'app', attempt: 0, image: 'busybox:1.28' };
const mount: Action = { kind: 'mountVolumes' };
const finalize: Action = { kind: 'finalizeDeletion' };
const pull: Action = { kind: 'pullImage', ...image };
const start: Action = {
  ...image,
  kind: 'startContainer',
  containerKind: 'app',
  sandboxId: 's',
  imageId: 'i',
  backoffSeconds: 0,
};
const exited: ContainerState = {
  id: 'c',
  sandboxId: 's',
  name: 'app',
  kind: 'app',
  attempt: 0,
  state: 'exited',
  createdAt: 0,
  image: 'busybox:1.28',
  imageId: 'i',
  backoffSeconds: 0,
};
const unknown = new OutcomeUnknownError('no answer');

type Call = PromiseWithResolvers<Outcome> & {
  action: Action;
  signal: AbortSignal;
  progress: Parameters<WorkerPorts['execute']>[3];
};

function actionsOf({ removed = false } = {}) {
  const timers = createVirtualTimers();
  const stop = new AbortController();
  const state = initialState({ pod: podOf(), removed });
  const calls: Call[] = [];
  const asked: string[] = [];
  const logged: unknown[] = [];
  const flushed = Promise.withResolvers<void>();
  const log = { ...silentLog, warn: (message: string, fields?: object) => void logged.push([message, fields]) };
  const flights = createWorkerFlights(state, { timers, log });
  const actions = createWorkerActions(state, {
    ports: {
      timers,
      log,
      execute(action, _pod, signal, progress) {
        const call = { ...Promise.withResolvers<Outcome>(), action, signal, progress };
        calls.push(call);
        return call.promise;
      },
    },
    flights,
    statuses: { flushed: () => flushed.promise },
    loop: { wake: () => void asked.push('wake'), mustObserve: () => void asked.push('mustObserve') },
    signal: stop.signal,
  });
  const last = (): Call => calls.at(-1) as Call;
  const succeed = async (outcome: Outcome = {}): Promise<void> => {
    last().resolve(outcome);
    await settled();
  };
  const fail = async (error: Error): Promise<void> => {
    last().reject(error);
    await settled();
  };
  const kinds = (): string[] => flights.underWay().map(({ kind }) => kind);
  const failures = () => state.failures.observed();
  return { timers, stop, state, calls, asked, logged, flushed, flights, actions, last, succeed, fail, kinds, failures };
}

it('an action is performed at once, and its outcome is added to the state before the worker decides again', async () => {
  const { actions, state, asked, calls, kinds, succeed } = actionsOf();
  actions.perform(mount, undefined);
  expect(calls.map(({ action }) => action)).toEqual([mount]);
  expect(kinds()).toEqual(['mountVolumes']);
  expect(asked).toEqual([]);
  await succeed({ volumes: 'mounted' });
  expect([state.volumes, kinds(), asked]).toEqual(['mounted', [], ['wake']]);
});

it('an action that failed counts as failed, and the worker decides again', async () => {
  const { actions, asked, kinds, failures, fail } = actionsOf();
  actions.perform(mount, undefined);
  await fail(new Error('no disk'));
  expect(failures()).toMatchObject([{ action: mount, count: 1, message: 'no disk' }]);
  expect(failures()[0]).not.toHaveProperty('unknown');
  expect([kinds(), asked]).toEqual([[], ['wake']]);
});

it.each<[string, Action, number]>([
  ['the start of a short call', start, 0],
  ['the end of a long call', pull, 3000],
])('an unknown outcome counts as an outage from %s on, and causes an observation', async (_, action, since) => {
  const { timers, actions, state, asked, logged, kinds, failures, fail } = actionsOf();
  actions.perform(action, undefined);
  const began = timers.now();
  timers.advance(3000);
  await fail(unknown);
  expect(state.outages.isUnknown()).toBe(true);
  state.outages.observing()(timers.now());
  expect(state.outages.observed()).toEqual([{ from: began + since, to: timers.now() }]);
  expect(failures()).toMatchObject([{ action, count: 1, unknown: true, at: timers.now() }]);
  expect(logged).toEqual([['outcome unknown', { action: action.kind, message: 'no answer' }]]);
  expect([kinds(), asked]).toEqual([[action.kind], ['mustObserve', 'wake']]);
});

it('an unknown outcome of a probe is no outage, but causes an observation', async () => {
  const { actions, state, asked, fail } = actionsOf();
  actions.perform({ kind: 'runProbe', container: 'app', id: 'c', probe: 'liveness' }, undefined);
  await fail(unknown);
  expect(state.outages.isUnknown()).toBe(false);
  expect(asked).toEqual(['mustObserve', 'wake']);
});

it.each([unknown, new Error('aborted')])(
  'an action that was cancelled does not count as failed: $name',
  async (error) => {
    const { actions, state, asked, kinds, failures, last, fail } = actionsOf();
    actions.perform(pull, undefined);
    actions.perform({ kind: 'cancel', key: 'pullImage/app/0/busybox:1.28' }, undefined);
    expect(last().signal.aborted).toBe(true);
    expect(kinds()).toEqual(['pullImage']);
    await fail(error);
    expect(failures()).toEqual([]);
    expect(state.outages.isUnknown()).toBe(false);
    expect([kinds(), asked]).toEqual([[], ['wake']]);
  },
);

it('an action that fails after the worker was stopped does not count as failed', async () => {
  const { actions, stop, kinds, failures, fail } = actionsOf();
  actions.perform(mount, undefined);
  stop.abort();
  await fail(unknown);
  expect([kinds(), failures()]).toEqual([[], []]);
});

it('the cancel of an action starts no action', () => {
  const { actions, calls, kinds } = actionsOf();
  actions.perform({ kind: 'cancel', key: 'mountVolumes' }, undefined);
  expect([calls, kinds()]).toEqual([[], []]);
});

it('the progress of a pull is in the state until the pull ends, and wakes the worker', async () => {
  const { actions, state, asked, last, succeed } = actionsOf();
  actions.perform(pull, undefined);
  const progress = { state: 'pulling', doneBytes: 1 } as const;
  last().progress(progress);
  expect(state.images.observed().pulls).toEqual({ 'pullImage/app/0/busybox:1.28': progress });
  expect(asked).toEqual(['wake']);
  await succeed({ image: { container: 'app', state: { attempt: 0, image: image.image, state: 'absent' } } });
  expect(state.images.observed().pulls).toEqual({});
});

it.each<Action>([
  { kind: 'removeContainer', id: 'c', container: 'app', attempt: 0 },
  { kind: 'removeSandbox', id: 's' },
])('the action $kind is in flight, but not performed, until the record is written', async (action) => {
  const { timers, actions, flights, state, calls, kinds, fail } = actionsOf();
  const recorded = Promise.withResolvers<void>();
  actions.perform(action, recorded.promise);
  await settled();
  expect([calls, kinds()]).toEqual([[], [action.kind]]);
  timers.advance(500);
  recorded.resolve();
  await settled();
  expect(calls.map((call) => call.action)).toEqual([action]);
  // The wait for the record is not part of the outage.
  await fail(unknown);
  state.outages.observing()(timers.now() + 1);
  expect(state.outages.observed()).toEqual([{ from: timers.now(), to: timers.now() + 1 }]);
  expect(flights.isObservationDue()).toBe(true);
});

it.each<Action>([
  { kind: 'removeContainer', id: 'c', container: 'app', attempt: 0 },
  { kind: 'removeSandbox', id: 's' },
])('the action $kind is performed at once if there is nothing to record', (action) => {
  const { actions, calls } = actionsOf();
  actions.perform(action, undefined);
  expect(calls).toHaveLength(1);
});

it('an action that destroys no evidence does not wait for the record', () => {
  const { actions, calls } = actionsOf();
  actions.perform({ kind: 'stopSandbox', id: 's' }, new Promise(() => undefined));
  expect(calls).toHaveLength(1);
});

it.each(['status', 'record'])('the deletion of the object waits for the write of the %s', async (late) => {
  const { actions, calls, flushed } = actionsOf();
  const recorded = Promise.withResolvers<void>();
  const [first, second] = late === 'status' ? [recorded, flushed] : [flushed, recorded];
  actions.perform(finalize, recorded.promise);
  first.resolve();
  await settled();
  expect(calls).toEqual([]);
  second.resolve();
  await settled();
  expect(calls.map(({ action }) => action)).toEqual([finalize]);
});

it('an accepted deletion stays in flight until the object changes', async () => {
  const { actions, flights, flushed, asked, kinds, failures, succeed } = actionsOf();
  flights.noteFailure(finalize, new Error('before'));
  flushed.resolve();
  actions.perform(finalize, undefined);
  await settled();
  actions.objectChanged();
  expect(kinds()).toEqual(['finalizeDeletion']);
  await succeed();
  expect([kinds(), failures(), asked]).toEqual([['finalizeDeletion'], [], []]);
  actions.objectChanged();
  expect(kinds()).toEqual([]);
});

it('a deletion of an object that no longer exists ends at once', async () => {
  const { actions, state, flushed, asked, kinds, succeed } = actionsOf();
  flushed.resolve();
  actions.perform(finalize, undefined);
  await settled();
  await succeed({ removed: true });
  expect([state.removed, kinds(), asked]).toEqual([true, [], ['wake']]);
});

it('a change of the object does not end another deletion after a later action has succeeded', async () => {
  const { actions, flushed, kinds, calls } = actionsOf();
  flushed.resolve();
  actions.perform(finalize, undefined);
  await settled();
  calls[0]?.resolve({});
  await settled();
  actions.objectChanged();
  actions.perform(mount, undefined);
  calls[1]?.resolve({ volumes: 'mounted' });
  await settled();
  actions.perform(finalize, undefined);
  actions.objectChanged();
  expect(kinds()).toEqual(['finalizeDeletion']);
});

it.each<[string, Outcome, number]>([
  [
    'started nothing because the image no longer exists keeps',
    { image: { container: 'app', state: { attempt: 0, image: image.image, state: 'absent' } } },
    1,
  ],
  ['succeeded ends', {}, 0],
])('a start that %s the earlier failures of the start', async (_, outcome, left) => {
  const { actions, flights, state, kinds, failures, succeed } = actionsOf();
  state.runtime = { sandboxes: [], containers: [exited] };
  flights.noteFailure(start, new Error('before'));
  actions.perform(start, undefined);
  await succeed(outcome);
  expect(kinds()).toEqual([]);
  expect(failures()).toHaveLength(left);
});

it('a check that finds no image succeeds, unlike a start that finds none', async () => {
  const { actions, flights, failures, succeed } = actionsOf();
  const check: Action = { kind: 'checkImage', mustExist: false, ...image };
  flights.noteFailure(check, new Error('before'));
  actions.perform(check, undefined);
  await succeed({ image: { container: 'app', state: { attempt: 0, image: image.image, state: 'absent' } } });
  expect(failures()).toEqual([]);
});
