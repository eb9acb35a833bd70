import { describe, expect, it } from 'vitest';
import type { ContainerStatus } from '../api/generated/types.ts';
import { decide } from './decide.ts';
import {
  at,
  container,
  decided,
  ending,
  entry,
  exited,
  type Given,
  inputOf,
  running,
  sandbox,
  stamp,
  written,
} from './fixtures.ts';
import type { Action, Decision, FailedAction, Transition } from './types.ts';

const app = running('app');
const failed = (action: Action, seconds: number, more: Partial<FailedAction> = {}): FailedAction => ({
  action,
  at: at(seconds),
  count: 1,
  reason: 'Failed',
  message: 'no',
  ...more,
});
const steps = (given: Given, ...types: string[]): Transition[] =>
  decided(given).transitions.filter(({ type }) => types.includes(type));
const brief = (given: Given, ...types: string[]) =>
  steps(given, ...types).map((step) => [step.type, (step.at - at(0)) / 1000, step.message]);
const eventsOf = ({ events }: Decision): string[] => events.map(({ reason, message }) => `${reason}: ${message}`);

describe('the steps of a Pod', () => {
  it.each<[string, Given, unknown[]]>([
    ['its creation', { metadata: { creationTimestamp: stamp(-200) } }, ['Created', -200, undefined]],
    ['its assignment to a node', {}, ['Scheduled', -100, 'to node node']],
    ['the mount of its volumes', {}, ['VolumesMounted', 0, undefined]],
    ['its deletion', { deleted: 30, runs: [app] }, ['DeletionRequested', 0, 'grace period 30 s']],
    [
      'its final phase',
      { status: { phase: 'Failed', reason: 'Evicted', message: 'no' } },
      ['Finished', 0, 'Evicted: no'],
    ],
    ['its final phase without a reason', { status: { phase: 'Succeeded' } }, ['Finished', 0, undefined]],
    ['its removal from the API', { input: { removed: true } }, ['Gone', 0, undefined]],
  ])('%s is a step', (_, given, expected) => {
    expect(brief(given, expected[0] as string)).toEqual([expected]);
  });
  it('a failure to mount a volume is a step with the time of the next pull if the pull of its image has failed', () => {
    const mountFailed = (more: Partial<FailedAction>) =>
      steps(
        { observed: { volumes: 'pending', failures: [failed({ kind: 'mountVolumes' }, -2, more)] } },
        'MountFailed',
      );
    expect(mountFailed({ reason: 'ErrImagePull', image: 'v' })).toEqual([
      { key: `mountVolumes/Failed/${at(-2)}`, at: at(-2), type: 'MountFailed', message: 'no', deadline: at(8) },
    ]);
    expect(mountFailed({ reason: 'FailedMount' })).toEqual([
      { key: `mountVolumes@${at(-2)}`, at: at(-2), type: 'MountFailed', message: 'no' },
    ]);
  });
  it('a Pod that runs has no step about a creation time that is unknown or about an end that has not come', () => {
    const given: Given = { runs: [app], observed: { volumes: 'pending' } };
    const types = ['Created', 'VolumesMounted', 'DeletionRequested', 'TerminationBegan', 'Finished', 'Removed', 'Gone'];
    expect(steps(given, ...types)).toEqual([]);
  });
  it('a Pod that is not assigned to its node has no step about the assignment', () => {
    const conditions = [{ type: 'PodScheduled', status: 'False', lastTransitionTime: stamp(-100) }];
    expect(steps({ status: { conditions } }, 'Scheduled')).toEqual([]);
    expect(steps({ status: { conditions: [] } }, 'Scheduled')).toEqual([]);
  });
  it.each<[string, Given['observed'], boolean]>([
    ['nothing of the Pod is left', {}, true],
    ['a sandbox is left', { sandboxes: [sandbox(0, { ready: false, stopped: true })] }, false],
    ['a container is left', { containers: [exited('app', 0, -1)] }, false],
    ['a volume is left', { volumes: 'unmounted' }, false],
  ])('the removal from the node, if %s, is a step: %s', (_, observed, isRemoved) => {
    const given: Given = {
      deleted: 30,
      ending: ending(30),
      observed: { sandboxes: [], containers: [], volumes: 'gone', ...observed },
    };
    expect(steps(given, 'Removed')).toHaveLength(isRemoved ? 1 : 0);
  });
  it('nothing is removed from the node before the Pod ends', () => {
    expect(steps({ observed: { sandboxes: [], containers: [], volumes: 'gone' } }, 'Removed')).toEqual([]);
  });
});

describe('the steps of sandboxes', () => {
  const lost = sandbox(0, { ready: false });
  it('a sandbox that is ready is a step with its address and the time of its creation', () => {
    expect(steps({}, 'SandboxReady', 'SandboxLost', 'SandboxStopped')).toEqual([
      { type: 'SandboxReady', key: 'Sandbox/0/s0/Ready', at: at(-100), attempt: 0, message: '10.0.0.2' },
    ]);
  });
  it.each<[string, Given, string]>([
    ['lost', { observed: { sandboxes: [lost] } }, 'SandboxLost'],
    ['stopped by this agent', { observed: { sandboxes: [{ ...lost, stopped: true }] } }, 'SandboxStopped'],
    [
      'not ready in a Pod that ends',
      { deleted: 30, ending: ending(30), observed: { sandboxes: [lost] } },
      'SandboxStopped',
    ],
  ])('a sandbox that is %s is a step', (_, given, type) => {
    expect(steps(given, 'SandboxLost', 'SandboxStopped')).toMatchObject([
      { type, key: `Sandbox/0/s0/${type.slice(7)}` },
    ]);
  });
  it.each<[string, Given, boolean]>([
    ['with a container', { runs: [app], observed: { sandboxes: [lost] } }, true],
    ['without a container', { observed: { sandboxes: [lost] } }, true],
    ['in a Pod that ends', { runs: [app], deleted: 30, ending: ending(30), observed: { sandboxes: [lost] } }, false],
  ])('an Event reports the loss of a sandbox %s: %s', (_, given, isReported) => {
    expect(eventsOf(decided(given)).some((line) => line.startsWith('SandboxChanged'))).toBe(isReported);
  });
});

describe('the steps of stops', () => {
  it('failed stops of one run are reported once for each try, even if their deadlines differ', () => {
    const stop = (deadline: number) => failed({ kind: 'stopContainer', id: 'app-0', deadline: at(deadline) }, -1);
    const remove = failed({ kind: 'removeContainer', id: 'app-0', container: 'app', attempt: 0 }, -1);
    const failures = [stop(30), stop(40), remove];
    const decision = decided({ runs: [app], deleted: 30, ending: ending(30), observed: { failures } });
    expect(eventsOf(decision).filter((line) => line.startsWith('FailedKillPod'))).toHaveLength(2);
    expect(decision.transitions.filter(({ type }) => type === 'ActionFailed')).toHaveLength(2);
  });
  it('the app containers begin to stop with the first stop signal', () => {
    const spec = { containers: [container('app'), container('web')] };
    const memory = { signalledAt: { 'app-0': at(3), 'web-0': at(2) } };
    const given: Given = { spec, runs: [app, running('web')], deleted: 30, ending: ending(30), memory, now: 5 };
    expect(brief(given, 'AppsStopping')).toEqual([['AppsStopping', 2, undefined]]);
    const hook = { preStop: { exec: { command: ['true'] } } };
    const waits = { ...given, spec: { containers: [container('app', { lifecycle: hook })] }, runs: [app], memory: {} };
    expect(brief(waits, 'AppsStopping')).toEqual([]);
  });
});

describe('the steps of a turn', () => {
  const turn = { turn: { entry: 'clean', since: at(0) } };
  const given: Given = {
    spec: { deferContainers: [entry('clean')] },
    deleted: 30,
    ending: ending(30, 30, turn),
    now: 9,
    runs: [exited('app', 0, 0)],
  };
  it('the turn of an entry begins with its first run', () => {
    const runs = [app, exited('clean', 1, 3, { startedAt: at(2) }), running('clean', { attempt: 1, startedAt: at(5) })];
    expect(brief({ ...given, runs }, 'DeferBegan')).toEqual([['DeferBegan', 2, undefined]]);
    const later = [running('clean', { startedAt: at(10) })];
    expect(brief({ ...given, runs: later }, 'DeferBegan')).toEqual([['DeferBegan', 9, undefined]]);
  });
  it('the turn of an entry begins when its start or the pull of its image is requested', () => {
    const requests: Action[] = [
      { kind: 'pullImage', container: 'clean', attempt: 0, image: 'i' },
      { kind: 'startContainer', container: 'clean', attempt: 0 } as Action,
    ];
    for (const action of requests)
      expect(brief({ ...given, observed: { underWay: [action], images: {} } }, 'DeferBegan')).toHaveLength(1);
    expect(brief({ ...given, observed: { images: {} } }, 'DeferBegan')).toEqual([]);
  });
  it('a pull in advance of the image of an entry does not begin its turn', () => {
    const underWay = [{ kind: 'pullImage', container: 'clean', attempt: 0, image: 'i' }] as const;
    const spec = { deferContainers: [entry('clean')] };
    expect(steps({ spec, runs: [app], observed: { underWay, images: {} } }, 'DeferBegan')).toEqual([]);
  });
});

describe('the steps of probes', () => {
  const probe = { exec: { command: ['true'] } };
  const spec = { containers: [container('app', { readinessProbe: probe })] };
  const state = (passing?: boolean) => ({ serial: 1, dueAt: at(5), successes: 1, failures: 0, passing });
  const given = (passing: boolean | undefined, recorded: string[]): Given => ({
    spec,
    runs: [app],
    memory: { probes: { 'app-0/readiness': state(passing) }, recorded: new Set(recorded) },
  });
  it('a new agent, whose record has no steps, reports the state of each probe that it knows', () => {
    expect(steps(given(true, []), 'ProbePassing')).toMatchObject([{ container: 'app', reason: 'readiness' }]);
    expect(steps(given(false, []), 'ProbeFailing')).toMatchObject([{ container: 'app', reason: 'readiness' }]);
    expect(steps(given(undefined, []), 'ProbePassing', 'ProbeFailing')).toEqual([]);
  });
  it('an agent that has reported steps reports only changes of the state of a probe', () => {
    expect(steps(given(true, ['Scheduled']), 'ProbePassing', 'ProbeFailing')).toEqual([]);
    const result = { serial: 2, result: 'Failure', message: 'why' } as const;
    const failing = { ...spec, containers: [container('app', { readinessProbe: { ...probe, failureThreshold: 1 } })] };
    const probes = { 'app-0/readiness': result };
    const changed = { ...given(true, ['Scheduled']), spec: failing, observed: { probes } };
    expect(steps(changed, 'ProbePassing', 'ProbeFailing')).toMatchObject([{ type: 'ProbeFailing', message: 'why' }]);
  });
});

describe('images', () => {
  const pulled = { millis: 1500, sizeBytes: 7 };
  it('the pull of the image of the running attempt is still a fact after the start', () => {
    const images = { app: { state: 'present', attempt: 0, image: 'i', imageId: 'sha', pulled } } as const;
    const given: Given = { runs: [app], observed: { images } };
    expect(brief(given, 'Pulled')).toEqual([['Pulled', 0, 'i: 1500 ms, 7 bytes']]);
    expect(eventsOf(decided(given))).toContain(
      'Pulled: Successfully pulled image "i" in 1.5s (1.5s including waiting). Image size: 7 bytes.',
    );
  });
  it('an image that was looked up in advance is not reported before the container starts', () => {
    const spec = { initContainers: [container('init')] };
    expect(eventsOf(decided({ spec, runs: [running('init')] })).filter((line) => line.startsWith('Pulled'))).toEqual(
      [],
    );
  });
});

it('an ephemeral container whose target does not run is reported once', () => {
  const spec = { ephemeralContainers: [{ ...container('debug'), targetContainerName: 'other' }] };
  const input = inputOf({ spec, runs: [app] });
  const line = 'Failed: Error: unable to find target container other';
  const first = decide(input);
  expect(eventsOf(first)).toContain(line);
  expect(eventsOf(decide(written(input, first)))).not.toContain(line);
});

describe('the steps of a Pod whose containers and sandbox the runtime has lost', () => {
  const of = (status: Partial<ContainerStatus>): Given => ({
    spec: { restartPolicy: 'Never' },
    observed: { sandboxes: [] },
    status: {
      containerStatuses: [
        { name: 'app', image: 'i', imageID: 'sha', ready: false, restartCount: 2, containerID: 'test://a', ...status },
      ],
    },
  });
  const unknown = { terminated: { exitCode: 137, reason: 'ContainerStatusUnknown' } };
  const lost = [
    { key: 'Sandbox/app/2/Lost', type: 'SandboxLost', at: at(0) },
    {
      key: 'Exited/app/2',
      type: 'Exited',
      at: at(0),
      container: 'app',
      containerKind: 'app',
      attempt: 2,
      exitCode: 137,
      reason: 'ContainerStatusUnknown',
    },
  ];
  it('a lost run and its sandbox end with an unknown end, also for an agent that has not seen the status before', () => {
    for (const state of [{ running: { startedAt: stamp(-50) } }, unknown])
      expect(steps(of({ state }), 'SandboxLost', 'Exited')).toEqual(lost);
    const waits = of({ state: { waiting: { reason: 'ErrImagePull' } }, lastState: unknown });
    expect(steps(waits, 'SandboxLost', 'Exited')).toEqual(lost);
  });
  it('a run whose end the status shows is not lost, also if its Pod ended during the back-off after it', () => {
    const state = { terminated: { exitCode: 0, reason: 'Completed' } };
    expect(steps(of({ state }), 'SandboxLost', 'Exited')).toEqual([]);
    const lastState = { terminated: { exitCode: 1, reason: 'Error' } };
    expect(steps(of({ state: unknown, lastState }), 'SandboxLost', 'Exited')).toEqual([]);
  });
  it('a container of a deleted Pod that could not be started is not lost when its node has removed it', () => {
    const deleted: Given = { ...of({ state: unknown }), deleted: 0 };
    expect(steps(deleted, 'SandboxLost', 'Exited')).toEqual([]);
  });
});
