import { expect, test } from 'vitest';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { createRuns, type Run, type RunScript } from './runs.ts';

const pod = { uid: 'uid', namespace: 'default', name: 'pod' };

/** Returns runs with one created container, `run`. `changes`: the UIDs of the Pods whose changes were reported. */
function created(script: RunScript = {}) {
  const timers = createVirtualTimers(0);
  const changes: string[] = [];
  const runs = createRuns({ timers, script: () => script, changed: (uid) => changes.push(uid) });
  const run: Run = {
    id: 'c',
    sandboxId: 's',
    pod,
    podUid: pod.uid,
    name: 'app',
    kind: 'app',
    attempt: 0,
    image: 'i',
    imageId: 'i',
    annotations: {},
    state: 'created',
    createdAt: 0,
  };
  runs.containers.set(run.id, run);
  return { timers, changes, runs, run, traced: () => runs.trace.map(({ at, what }) => `${at} ${what}`) };
}

test.each<[string, RunScript, object]>([
  ['ends with the exit code of its script', { runMillis: 50, exitCode: 3 }, { exitCode: 3, reason: 'Error' }],
  ['ends with the exit code 0 by default', { runMillis: 50 }, { exitCode: 0, reason: 'Completed' }],
])('a simulated run %s, at the time of its script', (_, script, end) => {
  const { timers, changes, runs, run, traced } = created(script);
  timers.advance(10);
  runs.begin(run);
  expect(run).toMatchObject({ state: 'running', startedAt: 10 });
  timers.advance(49);
  expect(run.state).toBe('running');
  timers.advance(1);
  expect(run).toMatchObject({ state: 'exited', finishedAt: 60, ...end });
  expect(changes).toEqual(['uid', 'uid']);
  expect(traced()).toEqual(['10 start', '60 exit']);
});

test('a stop signal ends a simulated run after the time of its script, and a second signal has no effect', () => {
  const { timers, runs, run, traced } = created({ stopMillis: 20 });
  runs.begin(run);
  runs.signalStop(run);
  timers.advance(10);
  runs.signalStop(run);
  timers.advance(10);
  expect(run).toMatchObject({ state: 'exited', exitCode: 143, finishedAt: 20 });
  expect(traced()).toEqual(['0 start', '0 signal', '20 exit']);
});

test('a simulated run without stopMillis ignores the stop signal', () => {
  const { timers, runs, run } = created();
  runs.begin(run);
  runs.signalStop(run);
  timers.advance(3_600_000);
  expect(run.state).toBe('running');
});

test('a simulated run that was killed keeps its exit when the time of its script passes or another end follows', () => {
  const { timers, changes, runs, run, traced } = created({ runMillis: 50, stopMillis: 20 });
  runs.begin(run);
  runs.signalStop(run);
  timers.advance(10);
  runs.end(run, 137, 'kill');
  timers.advance(10);
  runs.end(run, 255, 'reboot');
  timers.advance(100);
  expect(run).toMatchObject({ state: 'exited', exitCode: 137, reason: 'Error', finishedAt: 10 });
  expect(changes).toHaveLength(2);
  expect(traced()).toEqual(['0 start', '0 signal', '10 exit']);
});

test('the end of a simulated container calls each listener once', () => {
  const { runs, run } = created();
  const calls: string[] = [];
  runs.onExit(run.id, () => calls.push('first'));
  runs.onExit(run.id, () => calls.push('second'));
  runs.onExit('other', () => calls.push('other'));
  runs.begin(run);
  runs.end(run, 0);
  runs.begin(run);
  runs.end(run, 0);
  expect(calls).toEqual(['first', 'second']);
});

test('a created simulated container cannot end, and its removal is no exit', () => {
  const { changes, runs, run, traced } = created();
  runs.end(run, 137, 'sandbox');
  expect(run.state).toBe('created');
  runs.remove(run);
  expect(runs.containers.size).toBe(0);
  expect(changes).toEqual([]);
  expect(traced()).toEqual(['0 remove']);
});

test('the removal of a running simulated container kills it first', () => {
  const { runs, run } = created();
  runs.begin(run);
  runs.remove(run);
  expect(run).toMatchObject({ state: 'exited', exitCode: 137 });
  expect(runs.trace.map(({ what, exitCode, cause }) => [what, exitCode, cause])).toEqual([
    ['start', undefined, undefined],
    ['exit', 137, 'removal'],
    ['remove', undefined, undefined],
  ]);
});

test('an abandoned start fails after its time with the exit code 128, without a start or an exit of a process', () => {
  const { timers, changes, runs, run, traced } = created();
  runs.abandonStart(run, 100);
  timers.advance(99);
  expect(run.state).toBe('created');
  timers.advance(1);
  expect(run).toMatchObject({ state: 'exited', exitCode: 128, reason: 'Error', finishedAt: 100 });
  expect(run.startedAt).toBeUndefined();
  expect(changes).toEqual(['uid']);
  expect(traced()).toEqual([]);
});

test('a container whose abandoned start has failed is not ended again', () => {
  const { timers, changes, runs, run } = created();
  runs.abandonStart(run, 100);
  timers.advance(200);
  runs.end(run, 255, 'reboot');
  runs.remove(run);
  expect(run).toMatchObject({ exitCode: 128, reason: 'Error', finishedAt: 100 });
  expect(changes).toEqual(['uid']);
});

test('a container that was ended during an abandoned start keeps that exit when the start fails', () => {
  const { timers, changes, runs, run } = created();
  runs.abandonStart(run, 100);
  timers.advance(50);
  runs.end(run, 137, 'sandbox');
  timers.advance(100);
  expect(run).toMatchObject({ state: 'exited', exitCode: 137, finishedAt: 50 });
  expect(changes).toEqual(['uid']);
});

test('a simulated run whose script has a startError fails to start, as with a real runtime', () => {
  const { timers, changes, runs, run, traced } = created({ startError: 'no such file' });
  timers.advance(10);
  expect(() => runs.begin(run)).toThrow('no such file');
  expect(run).toMatchObject({ state: 'exited', exitCode: 128, reason: 'StartError', message: 'no such file' });
  expect(run).toMatchObject({ finishedAt: 10 });
  expect(run.startedAt).toBeUndefined();
  expect(traced()).toEqual([]);
  expect(changes).toEqual(['uid']);
});
