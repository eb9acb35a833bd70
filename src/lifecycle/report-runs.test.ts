import { describe, expect, it } from 'vitest';
import type { PullProgress } from '../api/core/v1/pod/status/pull-progress.ts';
import {
  at,
  container,
  decided,
  endedEntry,
  ending,
  entry,
  exited,
  type Given,
  postExit,
  running,
  stamp,
} from './fixtures.ts';
import type { Action, Decision, FailedAction, ImageState, ProbeResult, Transition } from './types.ts';

const app = running('app');
const exec = { command: ['true'] };
const pull = { kind: 'pullImage', container: 'app', attempt: 0, image: 'i' } as const;
const absent: ImageState = { state: 'absent', attempt: 0, image: 'i' };
const failed = (action: Action, seconds: number, more: Partial<FailedAction> = {}): FailedAction => ({
  action,
  at: at(seconds),
  count: 1,
  reason: 'ErrImagePull',
  message: 'no',
  ...more,
});
const steps = (given: Given, ...types: string[]): Transition[] =>
  decided(given).transitions.filter(({ type }) => types.includes(type));
const linesOf = ({ events }: Decision, ...reasons: string[]): string[] =>
  events.filter(({ reason }) => reasons.includes(reason)).map(({ reason, message }) => `${reason}: ${message}`);

describe('pulls', () => {
  it.each<[number, number]>([
    [0, 0],
    [24, 0],
    [25, 1],
    [60, 2],
    [100, 4],
  ])('a pull that is %d %% done has an Event for its beginning and for %d quarters', (doneBytes, quarters) => {
    const progress: PullProgress = { state: 'pulling', doneBytes, totalBytes: 100 };
    const pulls = { 'pullImage/app/0/i': progress };
    const lines = linesOf(decided({ observed: { underWay: [pull], pulls, images: { app: absent } } }), 'Pulling');
    const quarter = `Pulling: Pulling image "i": ${doneBytes}% of 100`;
    expect(lines).toHaveLength(1 + quarters);
    expect([lines[0], lines.slice(1).every((line) => line.startsWith(quarter))]).toEqual([
      'Pulling: Pulling image "i"',
      true,
    ]);
  });
  it.each<[string, Given['observed'], string[]]>([
    ['under way', { images: { app: absent } }, ['pullImage/app/0/i/Pulling/0']],
    [
      'under way again after a failure',
      { images: { app: absent }, failures: [failed(pull, -20)] },
      [`pullImage/app/0/i/Pulling/${at(-20)}`],
    ],
    ['still under way although it has just failed', { images: { app: absent }, failures: [failed(pull, 0)] }, []],
    ['still under way although its image is present', {}, []],
  ])('a pull that is %s has the expected steps', (_, observed, keys) => {
    expect(steps({ observed: { underWay: [pull], ...observed } }, 'Pulling').map(({ key }) => key)).toEqual(keys);
  });
  const check = { kind: 'checkImage', container: 'app', attempt: 0, image: 'i', mustExist: false } as const;
  const start = { kind: 'startContainer', container: 'app', attempt: 0 } as Action;
  it.each<[string, FailedAction, string[], object]>([
    [
      'pull',
      failed(pull, -0.5),
      ['Failed: Failed to pull image "i": no', 'Failed: Error: ErrImagePull'],
      { type: 'PullFailed', at: at(-0.5), reason: 'ErrImagePull', message: 'no', deadline: at(9.5) },
    ],
    [
      'pull with a name that is not valid',
      failed(pull, -0.5, { reason: 'InvalidImageName' }),
      ['InspectFailed: no', 'Failed: Error: InvalidImageName'],
      { type: 'PullFailed', reason: 'InvalidImageName' },
    ],
    [
      'lookup',
      failed(check, -0.5, { reason: 'ErrImageNeverPull' }),
      ['ErrImageNeverPull: no', 'Failed: Error: ErrImageNeverPull'],
      { type: 'StartFailed', at: at(-0.5), reason: 'ErrImageNeverPull', message: 'no' },
    ],
    [
      'start',
      failed(start, -0.5, { reason: 'RunContainerError' }),
      ['Failed: Error: no'],
      { type: 'StartFailed', reason: 'RunContainerError' },
    ],
  ])('a failed %s is reported by Events and a step', (_, failure, lines, step) => {
    const given: Given = { observed: { images: {}, failures: [failure] } };
    const reasons = ['Failed', 'InspectFailed', 'ErrImageNeverPull', 'BackOff'];
    expect(linesOf(decided(given), ...reasons)).toEqual(lines);
    expect(steps(given, 'PullFailed', 'StartFailed')).toMatchObject([step]);
  });
});

describe('runs', () => {
  it.each<[string, Partial<Parameters<typeof exited>[3]>, number, object]>([
    ['succeeded', {}, 0, { at: at(-5), exitCode: 0, reason: 'Completed' }],
    ['failed', { message: 'why' }, 2, { at: at(-5), exitCode: 2, reason: 'Error', message: 'why' }],
    ['was killed for its use of memory', { reason: 'OOMKilled' }, 137, { exitCode: 137, reason: 'OOMKilled' }],
    ['ended before its start was recorded', { startedAt: at(-3) }, 0, { at: at(-3) }],
    ['never started', { startedAt: undefined }, 128, { at: at(-5), exitCode: 128 }],
  ])('the end of a run that %s is a step', (_, more, exitCode, expected) => {
    const given: Given = { spec: { restartPolicy: 'Never' }, runs: [exited('app', exitCode, -5, more)] };
    expect(steps(given, 'Exited')).toMatchObject([{ type: 'Exited', container: 'app', attempt: 0, ...expected }]);
  });
  it('a container that runs has a step for its start, and none for an end', () => {
    expect(steps({ runs: [app] }, 'Started', 'Exited', 'BackOff', 'StopSignal')).toMatchObject([
      { type: 'Started', key: 'Started/app/0', at: at(-60) },
    ]);
  });
  it('only the newest run of a container that backs off has a step with the time of the next start', () => {
    const runs = [
      exited('app', 1, -5, { attempt: 1, backoffSeconds: 20 }),
      exited('app', 1, -30, { backoffSeconds: 60 }),
    ];
    expect(steps({ runs }, 'BackOff')).toMatchObject([{ key: 'BackOff/app/1', at: at(-5), deadline: at(15) }]);
    expect(steps({ runs: [exited('app', 1, 0)] }, 'BackOff')).toEqual([]);
  });
  const list = { spec: { deferContainers: [entry('clean')] } };
  const end = { deleted: 30, ending: ending(30) };
  it.each<[string, Given, string[]]>([
    ['in a Pod that runs', { runs: [app] }, []],
    ['in a Pod that ends', { ...end, runs: [app] }, ['Killing: Stopping container app']],
    ['that has exited in a Pod that ends', { ...end, runs: [exited('app', 0, -1)] }, []],
    ['in a Pod with defer containers before its stop signal', { ...end, ...list, runs: [app] }, []],
    [
      'in a Pod with defer containers after its stop signal',
      { ...end, ...list, runs: [app], memory: { signalledAt: { 'app-0': at(0) } } },
      ['Killing: Stopping container app'],
    ],
    [
      'that is stopped for a reason of its own',
      { runs: [app], memory: { stops: { 'app-0': { at: at(0), deadline: at(5), restart: true, message: 'why' } } } },
      ['Killing: why'],
    ],
  ])('the Event Killing of a container %s is reported if the container is being stopped', (_, given, lines) => {
    expect(linesOf(decided(given), 'Killing')).toEqual(lines);
  });
});

describe('hooks and probes', () => {
  const spec = { containers: [container('app', { lifecycle: { postStart: { exec } } })] };
  const hook = { kind: 'runHook', container: 'app', id: 'app-0', hook: 'postStart' } as const;
  it.each<[string, Given, object[]]>([
    [
      'that is under way',
      { observed: { underWay: [hook] } },
      [{ type: 'HookBegan', key: 'Hook/postStart/app/0/Began' }],
    ],
    ['that has succeeded', { observed: { hooks: { 'app-0/postStart': {} } } }, [{ type: 'HookDone' }]],
    [
      'that has failed',
      { observed: { hooks: { 'app-0/postStart': { failure: 'no' } } } },
      [{ type: 'HookFailed', message: 'no' }],
    ],
    [
      'preStop that has failed',
      {
        spec: { containers: [container('app', { lifecycle: { preStop: { exec } } })] },
        observed: { hooks: { 'app-0/preStop': { failure: 'no' } } },
      },
      [{ type: 'HookFailed', reason: 'preStop', message: 'no' }],
    ],
    ['that the container does not have', { spec: {}, observed: { hooks: { 'app-0/postStart': {} } } }, []],
  ])('the steps of a hook %s are as expected', (_, given, expected) => {
    const found = steps({ spec, runs: [app], ...given }, 'HookBegan', 'HookDone', 'HookFailed');
    expect(found).toMatchObject(expected);
    expect(found).toHaveLength(expected.length);
  });
  it.each<[ProbeResult['result'], string[]]>([
    ['Success', []],
    ['Failure', ['Unhealthy: Readiness probe failed: why']],
    ['Warning', ['ProbeWarning: Readiness probe warning: why']],
    ['Unknown', ['Unhealthy: Readiness probe errored and resulted in unknown state: why']],
  ])('a probe with the result %s is reported by an Event unless it succeeded', (result, lines) => {
    const probes = { 'app-0/readiness': { serial: 1, result, message: 'why' } };
    const probed = { containers: [container('app', { readinessProbe: { exec } })] };
    expect(linesOf(decided({ spec: probed, runs: [app], observed: { probes } }), 'Unhealthy', 'ProbeWarning')).toEqual(
      lines,
    );
  });
});

describe('defer containers', () => {
  const turn = (name: string) => ({ turn: { entry: name, since: at(0) } });
  const base: Given = { deleted: 30, now: 5, runs: [app] };
  it.each<[string, Given, string]>([
    ['the end of the PreExit stage during its turns', { ending: ending(30, 25, turn('pre')) }, stamp(25)],
    [
      'the end of the grace period during the turns of PostExit entries',
      {
        ending: ending(30, 25, turn('post')),
        status: { deferContainerStatuses: [endedEntry('pre')] },
        runs: [exited('app', 0, 2), exited('pre', 0, 1)],
      },
      stamp(30),
    ],
  ])('the Event of an extension has %s', (_, more, until) => {
    const given = { ...base, ...more, spec: { deferContainers: [entry('pre'), postExit('post')] } };
    const extended = { ...given, ending: { ...given.ending, extendedSeconds: 10 } } as Given;
    expect(linesOf(decided(extended), 'ExtendGracePeriod')).toEqual([
      `ExtendGracePeriod: defer containers are still due: the grace period is extended until ${until}`,
    ]);
    expect(linesOf(decided(given), 'ExtendGracePeriod')).toEqual([]);
  });
  it('the Event DeferCompleted waits until the list has ended', () => {
    const spec = { deferContainers: [entry('pre'), entry('next')] };
    const status = { deferContainerStatuses: [endedEntry('pre')] };
    const given: Given = { ...base, spec, status, ending: ending(30, 30, turn('next')) };
    expect(linesOf(decided({ ...given, runs: [app, exited('pre', 0, 1)] }), 'DeferCompleted')).toEqual([]);
  });
  it.each<[string, string, number, object]>([
    ['skipped', 'Skipped', 137, { type: 'DeferSkipped', reason: 'Skipped', message: 'why' }],
    ['failed', 'Error', 3, { type: 'DeferEnded', at: at(4), reason: 'Error', exitCode: 3, message: 'why' }],
  ])('an entry whose end is recorded as %s is a step', (_, reason, exitCode, expected) => {
    const status = { deferContainerStatuses: [endedEntry('clean', reason, exitCode, 'why')] };
    const runs = [app, exited('clean', exitCode, 3, { startedAt: at(4) })];
    const spec = { deferContainers: [entry('clean')] };
    const given: Given = { ...base, spec, status, runs, ending: ending(30) };
    expect(steps(given, 'DeferSkipped', 'DeferEnded')).toMatchObject([expected]);
  });
  it.each<[string, number, number]>([
    ['now, in the second that the status has', 1.4, 1.4],
    ['at the end of the second that the status has', 5, 1.999],
  ])('an entry whose last attempt did not run ended %s', (_, now, expected) => {
    const status = { deferContainerStatuses: [endedEntry('clean', 'Error', 128, 'ErrImageNeverPull: none')] };
    const spec = { deferContainers: [entry('clean')] };
    for (const earlier of [[], [exited('clean', 1, 0.5)]]) {
      const given: Given = { ...base, now, spec, status, runs: [app, ...earlier], ending: ending(30) };
      expect(steps(given, 'DeferEnded')).toMatchObject([{ at: at(expected) }]);
    }
  });
  it('an entry of a removed object is not recorded as skipped if it ran or its end is recorded', () => {
    const given: Given = { ...base, spec: { deferContainers: [entry('clean')] }, input: { removed: true } };
    expect(steps(given, 'DeferSkipped')).toHaveLength(1);
    expect(steps({ ...given, runs: [app, running('clean')] }, 'DeferSkipped')).toEqual([]);
    const status = { deferContainerStatuses: [endedEntry('clean')] };
    expect(steps({ ...given, status }, 'DeferSkipped')).toEqual([]);
  });
});
