import { expect, it } from 'vitest';
import { podOf } from '../../../api/core/v1/pod/pod-fixtures.ts';
import { type Action, actionKey, type ContainerState, type SandboxState } from '../../../lifecycle/types.ts';
import { silentLog } from '../../../platform/silent-log.ts';
import { createVirtualTimers } from '../../../platform/virtual-timers.ts';
import { VolumeError } from '../../volumes/volume-error.ts';
import type { RuntimeView } from './ports.ts';
import { createWorkerFlights } from './running-actions.ts';
import { initialState } from './state.ts';

const sandbox: SandboxState = { id: 's', attempt: 0, ready: true, stopped: false, createdAt: 0, ips: [] };
const run = (state: ContainerState['state']): ContainerState => ({
  id: 'c',
  sandboxId: 's',
  name: 'app',
  kind: 'app',
  attempt: 0,
  state,
  createdAt: 0,
  image: 'i',
  imageId: 'sha',
  backoffSeconds: 0,
});
const viewOf = (...containers: ContainerState[]): RuntimeView => ({ sandboxes: [sandbox], containers });
const mount: Action = { kind: 'mountVolumes' };
const stop: Action = { kind: 'stopContainer', id: 'c', deadline: 0 };
const remove: Action = { kind: 'removeContainer', id: 'old', container: 'app', attempt: 0 };
const stopSandbox: Action = { kind: 'stopSandbox', id: 's' };

function flightsOf(view: RuntimeView = viewOf(run('running'))) {
  const timers = createVirtualTimers();
  const state = initialState({ pod: podOf(), removed: false });
  state.runtime = view;
  const logged: unknown[] = [];
  const log = { ...silentLog, warn: (message: string, fields?: object) => void logged.push([message, fields]) };
  const flights = createWorkerFlights(state, { timers, log });
  const kinds = (): string[] => flights.underWay().map(({ kind }) => kind);
  const failures = () => state.failures.observed().map(({ action, count, message }) => [action.kind, count, message]);
  const see = (next: RuntimeView): void => {
    const observation = flights.observing();
    state.runtime = next;
    observation.succeeded();
  };
  return { timers, state, logged, flights, kinds, failures, see };
}

it('an action is under way from its begin until its end', () => {
  const { timers, flights, kinds } = flightsOf();
  timers.advance(5);
  const flight = flights.begin(mount);
  expect(flight).toMatchObject({ action: mount, key: 'mountVolumes', began: timers.now() });
  expect(kinds()).toEqual(['mountVolumes']);
  expect(flights.isUnderWay('mountVolumes')).toBe(true);
  expect(flights.isUnderWay('unmountVolumes')).toBe(false);
  flights.end(flight, 'succeeded');
  expect(kinds()).toEqual([]);
  expect(flights.isUnderWay('mountVolumes')).toBe(false);
  expect(flights.isObservationDue()).toBe(false);
});

it.each([
  ['succeeded', []],
  ['failed', [['mountVolumes', 1, 'no disk']]],
] as const)('an action that %s leaves the failures %j', (outcome, left) => {
  const { flights, kinds, failures } = flightsOf();
  flights.noteFailure(mount, new Error('no disk'));
  flights.end(flights.begin(mount), outcome);
  expect(kinds()).toEqual([]);
  expect(failures()).toEqual(left);
});

it('noteFailure() counts and logs a failure at the current time', () => {
  const { timers, state, flights, logged } = flightsOf();
  flights.noteFailure(mount, new Error('no disk'));
  timers.advance(10);
  flights.noteFailure(mount, new Error('still no disk'));
  expect(state.failures.observed()).toMatchObject([{ count: 2, at: timers.now(), message: 'still no disk' }]);
  expect(logged).toEqual([
    ['action failed', { action: 'mountVolumes', message: 'no disk' }],
    ['action failed', { action: 'mountVolumes', message: 'still no disk' }],
  ]);
});

it.each<[Action, Error, object]>([
  [mount, new VolumeError('data', 'no disk', 'NoDisk'), { action: 'mountVolumes', volume: 'data' }],
  [
    mount,
    new VolumeError('data', 'not found', 'ErrImagePull', 'far/image:1'),
    { action: 'mountVolumes', volume: 'data', image: 'far/image:1' },
  ],
  [
    { kind: 'pullImage', container: 'app', attempt: 1, image: 'far/image:1' },
    new Error('no'),
    { action: 'pullImage', container: 'app', attempt: 1, image: 'far/image:1' },
  ],
  [stop, new Error('no'), { action: 'stopContainer', container: 'app', id: 'c' }],
  [stopSandbox, new Error('no'), { action: 'stopSandbox', id: 's' }],
])('the failure of %j is logged with the fields that name its object', (action, error, fields) => {
  const { flights, logged } = flightsOf();
  flights.noteFailure(action, error);
  expect(logged).toEqual([['action failed', { ...fields, message: error.message }]]);
});

it('a failure whose message is unchanged is logged once, until the action succeeds', () => {
  const { flights, logged } = flightsOf();
  const start = (attempt: number): Action => ({
    kind: 'checkImage',
    container: 'app',
    attempt,
    image: 'i',
    mustExist: true,
  });
  for (const attempt of [0, 0, 1, 2]) flights.noteFailure(start(attempt), new Error('no image'));
  expect(logged).toHaveLength(1);
  flights.noteFailure(start(2), new Error('other'));
  flights.noteFailure(start(2), new Error('no image'));
  expect(logged).toHaveLength(3);
  for (const _ of [1, 2]) flights.noteFailure(mount, new Error('no disk'));
  expect(logged).toHaveLength(4);
  flights.end(flights.begin(mount), 'succeeded');
  flights.noteFailure(mount, new Error('no disk'));
  expect(logged).toHaveLength(5);
});

it.each(['succeeded', 'failed', 'unknown'] as const)(
  'an action on the runtime that %s stays in flight until an observation that starts afterwards succeeds',
  (outcome) => {
    const { flights, kinds, failures, see } = flightsOf();
    flights.noteFailure(stop, new Error('before'));
    flights.end(flights.begin(stop), outcome);
    expect(kinds()).toEqual(['stopContainer']);
    expect(flights.isObservationDue()).toBe(true);
    expect(failures()).toHaveLength(1);
    see(viewOf(run('exited')));
    expect(kinds()).toEqual([]);
    expect(flights.isObservationDue()).toBe(false);
    expect(failures()).toHaveLength(outcome === 'succeeded' ? 0 : 1);
  },
);

it.each(['succeeded', 'failed'] as const)(
  'an action that %s is not in flight any more if the last observation shows its effect',
  (outcome) => {
    const { flights, kinds } = flightsOf(viewOf(run('exited')));
    flights.end(flights.begin(stop), outcome);
    expect(kinds()).toEqual([]);
    expect(flights.isObservationDue()).toBe(false);
  },
);

it.each([mount, stop])('the action $kind with an unknown outcome waits for an observation in any case', (action) => {
  const { flights, kinds, see } = flightsOf(viewOf(run('exited')));
  flights.end(flights.begin(action), 'unknown');
  expect(kinds()).toEqual([action.kind]);
  expect(flights.isObservationDue()).toBe(true);
  see(viewOf(run('exited')));
  expect(kinds()).toEqual([]);
});

it('an action that succeeded without an effect counts as failed', () => {
  const { flights, kinds, failures, logged, see } = flightsOf();
  flights.end(flights.begin(stop), 'succeeded');
  see(viewOf(run('running')));
  const message = 'stopContainer succeeded and had no effect: container c still runs';
  expect(kinds()).toEqual([]);
  expect(failures()).toEqual([['stopContainer', 1, message]]);
  expect(logged).toEqual([['action failed', { action: 'stopContainer', container: 'app', id: 'c', message }]]);
});

it('an action that failed does not count as failed again if its effect is missing', () => {
  const { flights, failures, see } = flightsOf();
  flights.end(flights.begin(stop), 'failed');
  see(viewOf(run('running')));
  expect(failures()).toEqual([]);
});

it.each<[Action, SandboxState[], string[]]>([
  [stopSandbox, [sandbox], []],
  [stopSandbox, [{ ...sandbox, ready: false }], ['s']],
  [{ kind: 'removeSandbox', id: 's' }, [sandbox], ['s']],
])('after a successful %j, an observation of %j leaves the stopped sandboxes %j', (action, sandboxes, stopped) => {
  const { flights, state, see } = flightsOf({ sandboxes: [sandbox], containers: [] });
  state.stoppedSandboxes.add('s');
  flights.end(flights.begin(action), 'succeeded');
  see({ sandboxes, containers: [] });
  expect([...state.stoppedSandboxes]).toEqual(stopped);
});

it('an action that ends during an observation waits for the next one, unless this one shows its effect', () => {
  const { flights, state, kinds, see } = flightsOf();
  const flight = flights.begin(stop);
  const other = flights.begin(remove);
  const observation = flights.observing();
  flights.end(flight, 'succeeded');
  flights.end(other, 'succeeded');
  state.runtime = viewOf(run('exited'));
  observation.succeeded();
  expect(kinds()).toEqual(['removeContainer']);
  expect(flights.isObservationDue()).toBe(true);
  see(viewOf());
  expect(kinds()).toEqual([]);
  expect(flights.isObservationDue()).toBe(false);
});

it('during an observation, no other one is due for the actions that ended before', () => {
  const { flights } = flightsOf();
  flights.end(flights.begin(stop), 'succeeded');
  flights.observing();
  expect(flights.isObservationDue()).toBe(false);
});

it('after a failed observation, all actions that ended before and during it wait for the next one', () => {
  const { flights, state, kinds, see } = flightsOf();
  const other = flights.begin(remove);
  flights.end(flights.begin(stop), 'succeeded');
  const observation = flights.observing();
  flights.end(other, 'succeeded');
  state.runtime = viewOf(run('exited'));
  observation.failed();
  expect(kinds().sort()).toEqual(['removeContainer', 'stopContainer']);
  expect(flights.isObservationDue()).toBe(true);
  see(viewOf());
  expect(kinds()).toEqual([]);
});

it('drop() ends the flight of an action without an observation', () => {
  const { flights, kinds } = flightsOf();
  flights.begin(mount);
  const { key } = flights.begin(stop);
  flights.drop(key);
  expect(kinds()).toEqual(['mountVolumes']);
  expect(flights.isObservationDue()).toBe(false);
});

it('cancel() aborts one action, which stays in flight until its call ends', () => {
  const { flights, kinds } = flightsOf();
  const [first, second] = [flights.begin(mount), flights.begin(stop)];
  flights.cancel(actionKey(mount));
  flights.cancel('no such action');
  expect([first.abort.signal.aborted, second.abort.signal.aborted]).toEqual([true, false]);
  expect(kinds()).toEqual(['mountVolumes', 'stopContainer']);
});

it('abortAll() aborts all actions that are under way', () => {
  const { flights } = flightsOf();
  const ended = flights.begin({ kind: 'unmountVolumes' });
  flights.end(ended, 'succeeded');
  const [first, second] = [flights.begin(mount), flights.begin(stop)];
  flights.abortAll();
  expect([ended, first, second].map(({ abort }) => abort.signal.aborted)).toEqual([false, true, true]);
});
