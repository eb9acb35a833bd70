import { describe, expect, it } from 'vitest';
import type { DeferContainer } from '../api/generated/types.ts';
import { decide } from './decide.ts';
import {
  at,
  container,
  decided,
  endedEntry,
  ending,
  entry,
  exited,
  type Given,
  inputOf,
  postExit,
  running,
  sandbox,
  stamp,
  written,
} from './fixtures.ts';
import type { Action, Decision, FailedAction } from './types.ts';

const exec = { command: ['true'] };
const app = running('app');
const pull = { kind: 'pullImage', container: 'app', attempt: 0, image: 'i' } as const;
const failed = (action: Action, seconds: number, more: Partial<FailedAction> = {}): FailedAction => ({
  action,
  at: at(seconds),
  count: 1,
  reason: 'Failed',
  message: 'no',
  ...more,
});
const eventsOf = ({ events }: Decision): string[] =>
  events.map(({ type, reason, message }) => `${type} ${reason}: ${message}`);
const stepsOf = ({ transitions }: Decision): string[] => transitions.map(({ type }) => type);

describe('Events and steps are reported once', () => {
  const probed = { livenessProbe: { exec } };
  it.each<[string, Given]>([
    ['a Pod that runs', { runs: [app] }],
    ['a container that backs off', { runs: [exited('app', 1, 0, { backoffSeconds: 20 })] }],
    ['a pull that failed', { observed: { failures: [failed(pull, -2)], images: {} } }],
    ['a Pod that is deleted', { runs: [app], deleted: 30 }],
    ['a lost sandbox', { runs: [app], observed: { sandboxes: [sandbox(0, { ready: false })] } }],
    [
      'a probe that failed',
      {
        spec: { containers: [container('app', probed)] },
        runs: [app],
        observed: { probes: { 'app-0/liveness': { serial: 1, result: 'Failure', message: 'no' } } },
      },
    ],
  ])('the Events and steps of %s are reported once', (_, given) => {
    const input = inputOf(given);
    const first = decide(input);
    expect(first.events.length + first.transitions.length).toBeGreaterThan(0);
    const second = decide(written(input, first));
    expect([second.events, second.transitions]).toEqual([[], []]);
  });
  it('steps are in chronological order', () => {
    const { transitions } = decided({ runs: [exited('app', 0, -5)], deleted: 30, now: 2 });
    const times = transitions.map((step) => step.at);
    expect(times).toEqual([...times].sort((a, b) => a - b));
  });
});

describe('Events', () => {
  const hooks = (hook: string) => ({ containers: [container('app', { lifecycle: { [hook]: { exec } } })] });
  const unavailable = { image: 'v', reason: 'ErrImagePull' };
  it.each<[string, Given, string[]]>([
    [
      'a container that was started',
      { runs: [app] },
      ['Normal Created: Created container: app', 'Normal Started: Started container app'],
    ],
    ['an image that was already present', {}, ['Normal Pulled: Container image "i" already present on machine']],
    [
      'a pull that begins',
      { observed: { images: { app: { state: 'absent', attempt: 0, image: 'i' } } } },
      ['Normal Pulling: Pulling image "i"'],
    ],
    [
      'a pull that ended',
      {
        observed: {
          images: {
            app: {
              state: 'present',
              attempt: 0,
              image: 'i',
              imageId: 'sha',
              pulled: { millis: 1500, withWaitingMillis: 2000, sizeBytes: 7 },
            },
          },
        },
      },
      ['Normal Pulled: Successfully pulled image "i" in 1.5s (2s including waiting). Image size: 7 bytes.'],
    ],
    [
      'a pull that failed',
      { observed: { failures: [failed(pull, 0, { reason: 'ErrImagePull' })], images: {} } },
      ['Warning Failed: Failed to pull image "i": no', 'Warning Failed: Error: ErrImagePull'],
    ],
    [
      'a container that backs off',
      { runs: [exited('app', 1, 0, { backoffSeconds: 20 })] },
      ['Warning BackOff: Back-off restarting failed container app in pod web_default(u1)'],
    ],
    ['a Pod that is deleted', { runs: [app], deleted: 30 }, ['Normal Killing: Stopping container app']],
    [
      'a sandbox that cannot be created',
      { observed: { sandboxes: [], failures: [failed({ kind: 'createSandbox', attempt: 0 }, 0)] } },
      ['Warning FailedCreatePodSandBox: Failed to create pod sandbox: no'],
    ],
    [
      'a sandbox that was lost',
      { runs: [app], observed: { sandboxes: [sandbox(0, { ready: false })] } },
      ['Normal SandboxChanged: Pod sandbox changed, it will be killed and re-created.'],
    ],
    [
      'a volume that cannot be mounted',
      { observed: { volumes: 'pending', failures: [failed({ kind: 'mountVolumes' }, 0, { reason: 'FailedMount' })] } },
      ['Warning FailedMount: no'],
    ],
    [
      'the image of a volume that cannot be pulled',
      { observed: { volumes: 'pending', failures: [failed({ kind: 'mountVolumes' }, -2, unavailable)] } },
      [
        'Warning Failed: Error: ErrImagePull',
        'Normal BackOff: Back-off pulling image "v"',
        'Warning Failed: Error: ImagePullBackOff',
      ],
    ],
    [
      'a container that cannot be stopped',
      { runs: [app], deleted: 30, observed: { failures: [failed({ kind: 'stopSandbox', id: 's0' }, 0)] } },
      ['Warning FailedKillPod: error killing pod: no'],
    ],
    [
      'a preStop hook that failed',
      { spec: hooks('preStop'), runs: [app], deleted: 30, observed: { hooks: { 'app-0/preStop': { failure: 'no' } } } },
      ['Warning FailedPreStopHook: PreStopHook failed'],
    ],
    [
      'a probe that failed',
      {
        spec: { containers: [container('app', { livenessProbe: { exec } })] },
        runs: [app],
        observed: { probes: { 'app-0/liveness': { serial: 1, result: 'Failure', message: 'no' } } },
      },
      ['Warning Unhealthy: Liveness probe failed: no'],
    ],
    [
      'a Pod that exceeded its deadline',
      { spec: { activeDeadlineSeconds: 1 }, runs: [app] },
      ['Normal DeadlineExceeded: Pod was active on the node longer than the specified deadline'],
    ],
  ])('%s is reported as an Event', (_, given, expected) => {
    expect(eventsOf(decided(given))).toEqual(expect.arrayContaining(expected));
  });
  it('a failure with an unknown outcome causes no Event, step or status', () => {
    const failures = [
      failed({ kind: 'createSandbox', attempt: 0 }, 0, { unknown: true }),
      failed(pull, 0, { unknown: true }),
    ];
    const { events, transitions, status } = decided({ observed: { sandboxes: [], images: {}, failures } });
    expect([events, transitions.filter(({ type }) => /Failed/.test(type))]).toEqual([[], []]);
    expect(status?.containerStatuses?.[0]?.state?.waiting).toEqual({ reason: 'ContainerCreating' });
  });
  it('a failed action is reported for each try', () => {
    const input = inputOf({
      observed: { sandboxes: [], failures: [failed({ kind: 'createSandbox', attempt: 0 }, 0)] },
    });
    const failures = [failed({ kind: 'createSandbox', attempt: 0 }, 2, { count: 2 })];
    const next = written(input, decide(input));
    expect(eventsOf(decide({ ...next, observed: { ...next.observed, failures } }))).toEqual([
      'Warning FailedCreatePodSandBox: Failed to create pod sandbox: no',
    ]);
  });
});

describe('Events of defer containers', () => {
  const given = (more: Partial<DeferContainer>, extra: Given = {}): Given => ({
    deleted: 30,
    ending: ending(30, 25, { turn: { entry: 'clean', since: at(0) } }),
    now: 10,
    runs: [app, ...(extra.runs ?? [])],
    spec: { deferContainers: [entry('clean', more)] },
    observed: extra.observed ?? {},
    status: extra.status ?? {},
    memory: extra.memory ?? {},
  });
  const about = (decision: Decision): string[] => eventsOf(decision).filter((line) => line.includes('Defer'));
  const recorded = (...ends: Parameters<typeof endedEntry>): Given => ({
    status: { deferContainerStatuses: [endedEntry(...ends)] },
    runs: [exited('clean', 0, 9)],
  });
  it('DeferStarted comes with the first run of an entry', () => {
    expect(about(decided(given({})))).toEqual([]);
    expect(about(decided(given({}, { runs: [running('clean')] })))).toEqual([
      `Normal DeferStarted: The Pod ends (Deleted): defer containers run until ${stamp(30)}`,
    ]);
  });
  it.each([
    ['was only created', running('clean', { state: 'created', startedAt: undefined })],
    ['could not be started', exited('clean', 128, 9, { startedAt: undefined, reason: 'StartError' })],
  ])('DeferStarted and DeferCompleted are absent if the only run of an entry %s', (_, run) => {
    expect(about(decided(given({}, { runs: [run] }))).filter((line) => !line.includes('DeferContainer'))).toEqual([]);
  });
  it.each<[string, Given, string]>([
    ['the success of all entries', recorded('clean'), 'Normal DeferCompleted: All defer containers succeeded'],
    [
      'the failure of an entry',
      recorded('clean', 'Error', 1),
      'Warning DeferCompleted: defer containers that failed: [clean]',
    ],
  ])('the Event DeferCompleted reports %s', (_, extra, expected) => {
    expect(about(decided(given({}, extra)))).toContain(expected);
  });
  it('DeferStarted and DeferCompleted are absent if no entry ran', () => {
    expect(about(decided(given({ onReasons: ['Completed'] })))).toEqual([
      'Warning DeferContainerSkipped: Defer container clean does not run: not due on Deleted',
    ]);
  });
  it('an entry that ran and had no time left is reported as cut off', () => {
    const cut = recorded('clean', 'Skipped', 137, 'the node had no time');
    expect(about(decided(given({}, { ...cut, runs: [exited('clean', 137, 9)] })))).toContain(
      'Warning DeferContainerSkipped: Defer container clean was cut off: the node had no time',
    );
  });
  const stops = {
    'clean-0': { at: at(8), deadline: at(8), restart: false, message: 'Container clean failed liveness probe' },
  };
  it.each<[string, Given, string]>([
    ['its exit code', { runs: [exited('clean', 3, 9)] }, 'Error: exit code 3'],
    [
      'the message of its stop',
      { runs: [exited('clean', 0, 9)], memory: { stops } },
      'Error: Container clean failed liveness probe',
    ],
    [
      'the failed pull of its image',
      { observed: { failures: [failed({ ...pull, container: 'clean' }, 9, { reason: 'ErrImagePull' })], images: {} } },
      'Error: ErrImagePull: no',
    ],
  ])('a failed entry is reported with %s as the cause', (_, extra, cause) => {
    expect(about(decided(given({}, extra)))).toContain(
      `Warning DeferContainerFailed: Defer container clean failed: ${cause}`,
    );
  });
  it('no entry is reported as failed with exit code 0', () => {
    const { message: _, ...stop } = stops['clean-0'];
    const decision = decided(given({}, { runs: [exited('clean', 0, 9)], memory: { stops: { 'clean-0': stop } } }));
    expect(about(decision).join()).not.toContain('failed: Error: exit code 0');
  });
  it('Events about an entry have its field path', () => {
    const { events } = decided(given({}, { runs: [exited('clean', 3, 9)] }));
    const path = 'spec.deferContainers{clean}';
    const byPath = Map.groupBy(events, ({ fieldPath }) => fieldPath);
    expect(byPath.get(path)?.map(({ reason }) => reason)).toEqual(['Created', 'Started', 'DeferContainerFailed']);
    expect(byPath.get(undefined)?.map(({ reason }) => reason)).toEqual(['DeferStarted', 'DeferCompleted']);
  });
});

describe('steps of the record', () => {
  it('the beginning of a termination, its deadline, and each move of the deadline are steps', () => {
    const spec = { deferContainers: [entry('pre')] };
    const input = inputOf({ spec, runs: [app], deleted: 30 });
    const first = decide(input);
    expect(stepsOf(first)).toEqual(expect.arrayContaining(['DeletionRequested', 'TerminationBegan', 'DeadlineSet']));
    const next = written(input, first);
    const moved = { ...next.observed, outages: [{ from: at(1), to: at(11) }] };
    const { transitions } = decide({ ...next, now: at(11), observed: moved });
    const message = 'an outage of the node';
    const step = { type: 'DeadlineSet', at: at(11), deadline: at(40), message };
    expect(transitions).toEqual([expect.objectContaining(step)]);
  });
  it('the step of an earlier deadline has the cause, also for a Pod without entries', () => {
    const input = inputOf({ runs: [app], deleted: 30 });
    const next = written(input, decide(input));
    const metadata = { ...next.pod.metadata, deletionGracePeriodSeconds: 5 };
    const { transitions } = decide({ ...next, now: at(1), pod: { ...next.pod, metadata } });
    const message = 'another deletion with a shorter grace period';
    expect(transitions).toContainEqual(expect.objectContaining({ type: 'DeadlineSet', message }));
  });
  it('entries of a removed object that did not run are recorded as skipped', () => {
    const spec = { deferContainers: [entry('pre'), postExit('post')] };
    const { transitions } = decided({ spec, runs: [app], input: { removed: true } });
    const skipped = transitions.filter(({ type }) => type === 'DeferSkipped');
    expect(skipped.map(({ container: name, message }) => [name, message])).toEqual([
      ['pre', 'the Pod was deleted with a grace period of 0'],
      ['post', 'the Pod was deleted with a grace period of 0'],
    ]);
  });
  it('an entry of a removed object that was given up is recorded as given up', () => {
    const spec = { deferContainers: [entry('pre'), postExit('post')] };
    const given: Given = { spec, runs: [app, running('pre')], deleted: 0, ending: ending(30), skip: ['post'] };
    const { transitions } = decided({ ...given, input: { removed: true } });
    expect(transitions).toContainEqual(
      expect.objectContaining({ type: 'DeferSkipped', container: 'post', message: 'given up' }),
    );
  });
  it('the end of an entry is a step once the status has it', () => {
    const turn = { turn: { entry: 'clean', since: at(0) } };
    const given: Given = { spec: { deferContainers: [entry('clean')] }, deleted: 30, ending: ending(30, 30, turn) };
    const runs = [app, exited('clean', 0, 2, { startedAt: at(1) })];
    expect(stepsOf(decided({ ...given, runs }))).not.toContain('DeferEnded');
    const status = { deferContainerStatuses: [endedEntry('clean')] };
    expect(stepsOf(decided({ ...given, runs, status }))).toContain('DeferEnded');
  });
  it('a StopSignal step has the deadline of the kill', () => {
    const { transitions } = decided({ runs: [app], deleted: 30, now: 5 });
    expect(transitions.find(({ type }) => type === 'StopSignal')).toMatchObject({ at: at(5), deadline: at(35) });
  });
});
