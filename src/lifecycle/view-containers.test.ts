import { describe, expect, it } from 'vitest';
import type { ContainerStatus } from '../api/generated/types.ts';
import {
  at,
  container,
  ending,
  entry,
  exited,
  type Given,
  inputOf,
  running,
  sandbox,
  stamp,
  startOf,
} from './fixtures.ts';
import type { FailedAction } from './types.ts';
import { type ContainerView, isMain, isRunning, isStarting, type PodView, succeeded, viewOf } from './view.ts';

const app = running('app');
const view = (given: Given): PodView => viewOf(inputOf(given));
const shown = (name: string, more: Partial<ContainerStatus> = {}): ContainerStatus => ({
  name,
  image: 'i',
  imageID: 'sha',
  ready: false,
  restartCount: 2,
  lastState: {},
  ...more,
});
const wasRunning = { containerID: 'containerd://x', state: { running: { startedAt: stamp(-50) } } };

describe('the view of a container', () => {
  const appOf = (given: Given) => view(given).apps[0];
  const withStatus = (more: Partial<ContainerStatus>): Given => ({
    status: { containerStatuses: [shown('app', more)] },
  });
  it('the runs are in order, the newest first, and only the newest one of the current sandbox is current', () => {
    const runs = [exited('app', 1, -9), running('app', { attempt: 2 }), exited('app', 1, -5, { attempt: 1 })];
    expect(appOf({ runs })?.runs.map(({ attempt }) => attempt)).toEqual([2, 1, 0]);
    expect(appOf({ runs })?.current?.attempt).toBe(2);
    expect(appOf({ runs, observed: { sandboxes: [sandbox(1)] } })?.current).toBeUndefined();
    expect(appOf({ runs, observed: { sandboxes: [sandbox(0), sandbox(1)] } })?.current).toBeUndefined();
    expect(appOf({})?.current).toBeUndefined();
  });
  it.each<[string, number, boolean, Given]>([
    ['has neither runs nor a status', 0, false, {}],
    ['has a run', 1, false, { runs: [app] }],
    ['has a status without a run', 0, false, withStatus({})],
    ['has a run that the runtime has lost', 3, true, withStatus(wasRunning)],
    [
      'has a run that the runtime has lost after its end',
      3,
      false,
      withStatus({ lastState: { terminated: { exitCode: 1 } } }),
    ],
    [
      'has the run that its status shows',
      3,
      false,
      { ...withStatus(wasRunning), runs: [running('app', { attempt: 2 })] },
    ],
    [
      'has a newer run than its status shows',
      5,
      false,
      { ...withStatus(wasRunning), runs: [running('app', { attempt: 4 })] },
    ],
    ['has only an older run than its status shows', 3, true, { ...withStatus(wasRunning), runs: [app] }],
  ])('the next attempt of a container that %s is %d, and its run counts as lost: %s', (_, next, isLost, given) => {
    expect([appOf(given)?.nextAttempt, appOf(given)?.isLost]).toEqual([next, isLost]);
  });
  it('a container is starting until the run of its start has ended', () => {
    const underWay = [startOf('app', 'app')];
    const starting = (given: Given) => [appOf(given)?.starting, isStarting(view(given))];
    expect(starting({})).toEqual([false, false]);
    expect(starting({ observed: { underWay } })).toEqual([true, true]);
    expect(starting({ observed: { underWay }, runs: [app] })).toEqual([true, true]);
    expect(starting({ observed: { underWay }, runs: [exited('app', 1, -1)] })).toEqual([false, false]);
    expect(starting({ observed: { underWay }, runs: [exited('app', 1, -1, { attempt: 1 })] })).toEqual([true, true]);
    expect(isStarting(view({ observed: { underWay: [{ kind: 'createSandbox', attempt: 0 }] } }))).toBe(true);
  });
  it('the kinds of containers have their own field paths, images and roles', () => {
    const spec = {
      initContainers: [container('init'), container('proxy', { restartPolicy: 'Always' })],
      containers: [container('app', { image: 'j', restartPolicy: 'Always' })],
      deferContainers: [{ name: 'clean', imageFrom: 'app' }],
      ephemeralContainers: [container('debug')],
    };
    const about = ({ fieldPath, image, sidecar }: ContainerView) => [fieldPath, image, sidecar];
    const { all } = view({ spec });
    expect(all.map(about)).toEqual([
      ['spec.initContainers{init}', 'i', false],
      ['spec.initContainers{proxy}', 'i', true],
      ['spec.containers{app}', 'j', false],
      ['spec.deferContainers{clean}', 'j', false],
      ['spec.ephemeralContainers{debug}', 'i', false],
    ]);
    expect(all.map(isMain)).toEqual([true, false, true, false, false]);
    expect(isMain(undefined)).toBe(false);
  });
});

describe('the view of an entry', () => {
  const base: Given = {
    spec: { deferContainers: [entry('clean')] },
    deleted: 30,
    ending: ending(30),
    runs: [app],
    now: 5,
  };
  const entryOf = (more: Partial<ContainerStatus>, given: Given = {}) =>
    view({ ...base, ...given, status: { deferContainerStatuses: [shown('clean', more)] } }).defers[0];
  it('a run that the runtime has lost is built from the status', () => {
    const lost = { sandboxId: 's0', kind: 'defer', attempt: 2, state: 'exited', lost: true, exitCode: 137 };
    expect(entryOf(wasRunning)?.latest).toMatchObject({
      ...lost,
      id: 'x',
      reason: 'ContainerStatusUnknown',
      createdAt: at(-50),
      finishedAt: at(5),
    });
    const terminated = { exitCode: 3, reason: 'Error', finishedAt: stamp(1), containerID: 'containerd://y' };
    const state = { waiting: { reason: 'CrashLoopBackOff' } };
    expect(entryOf({ lastState: { terminated }, state })?.latest).toMatchObject({
      ...lost,
      id: 'y',
      exitCode: 3,
      createdAt: at(5),
      finishedAt: at(1),
    });
  });
  it.each<[string, Partial<ContainerStatus>, Given]>([
    ['whose status has no run', {}, {}],
    ['whose run has no ID in the status', { lastState: { terminated: { exitCode: 3 } } }, {}],
    ['in a Pod without a sandbox', wasRunning, { observed: { sandboxes: [] } }],
  ])('no run is built for an entry %s', (_, status, given) => {
    expect(entryOf(status, given)?.latest).toBeUndefined();
  });
  it.each([
    ['ContainerCreating', 1, 2],
    ['CrashLoopBackOff', 2, 3],
    ['PendingDefer', 2, 3],
    ['PodRunning', 2, 3],
  ])(
    'the last attempt of an entry that waits with the reason %s was %d, and the next one is %d',
    (reason, last, next) => {
      const terminated = { exitCode: 3, containerID: 'containerd://y' };
      const found = entryOf({ lastState: { terminated }, state: { waiting: { reason } } });
      expect([found?.latest?.attempt, found?.nextAttempt]).toEqual([last, next]);
    },
  );
  it('no attempt is announced before the status has a termination', () => {
    const terminated = { exitCode: 3, containerID: 'containerd://y' };
    const status = {
      deferContainerStatuses: [shown('clean', { lastState: { terminated }, state: { waiting: { reason: 'x' } } })],
    };
    expect(view({ spec: base.spec ?? {}, status }).defers[0]?.nextAttempt).toBe(3);
  });
});

describe('the view of a Pod', () => {
  it('the policy, the grace period and the sandbox have defaults', () => {
    const { restartPolicy: _, terminationGracePeriodSeconds: __, ...spec } = inputOf({}).pod.spec ?? { containers: [] };
    const input = inputOf({ observed: { sandboxes: [sandbox(0), sandbox(2), sandbox(1)] } });
    const { restartPolicy, graceMillis, sandbox: newest } = viewOf({ ...input, pod: { ...input.pod, spec } });
    expect([restartPolicy, graceMillis, newest?.attempt]).toEqual(['Always', 30_000, 2]);
    const { spec: ___, ...pod } = input.pod;
    expect(() => viewOf({ ...input, pod })).toThrow(new TypeError('the Pod web has no spec'));
  });
  it('only the memory of runs that exist is used', () => {
    const stop = { at: at(0), deadline: at(1), restart: true };
    const probe = { serial: 1, dueAt: at(0), successes: 0, failures: 0 };
    const memory = {
      stops: { 'app-0': stop, gone: stop },
      signalledAt: { 'app-0': at(0), gone: at(0) },
      probes: { 'app-0/liveness': probe, 'gone/liveness': probe },
    };
    const { stops, signalledAt, probes } = view({ runs: [app], memory });
    expect([stops, signalledAt, probes].map(Object.keys)).toEqual([['app-0'], ['app-0'], ['app-0/liveness']]);
  });
  it('a try with an unknown outcome is not a failure, but the last try', () => {
    const action = { kind: 'createSandbox', attempt: 0 } as const;
    const failure: FailedAction = { action, at: at(0), count: 1, reason: 'Failed', message: 'no' };
    const tries = (more: Partial<FailedAction>) => {
      const { failureOf, lastTryOf } = view({ observed: { failures: [{ ...failure, ...more }] } });
      return [failureOf('createSandbox/0')?.count, lastTryOf('createSandbox/0')?.count, failureOf('other')?.count];
    };
    expect([tries({}), tries({ unknown: true })]).toEqual([
      [1, 1, undefined],
      [undefined, 1, undefined],
    ]);
  });
  it('a run has processes unless it was only created or has exited', () => {
    const states = (['created', 'running', 'unknown', 'exited'] as const).map((state) => running('app', { state }));
    expect([...states, undefined].map((run) => isRunning(run))).toEqual([false, true, true, false, false]);
    expect(
      [exited('app', 0, 0), exited('app', 1, 0), running('app', { exitCode: 0 }), undefined].map(succeeded),
    ).toEqual([true, false, false, false]);
  });
});
