import { describe, expect, it } from 'vitest';
import type { ContainerStatus } from '../api/generated/types.ts';
import { at, container, decided, ending, entry, exited, type Given, running, sandbox } from './fixtures.ts';
import type { Action, FailedAction, ImageState } from './types.ts';

type State = NonNullable<ContainerStatus['state']>;
const app = running('app');
const exec = { command: ['true'] };
const pull = { kind: 'pullImage', container: 'app', attempt: 0, image: 'i' } as const;
const absent: ImageState = { state: 'absent', attempt: 0, image: 'i' };
const failed = (action: Action, reason: string, seconds = 0, more: Partial<FailedAction> = {}): FailedAction => ({
  action,
  at: at(seconds),
  count: 1,
  reason,
  message: 'no',
  ...more,
});
const stateOf = (given: Given): State | undefined => decided(given).status?.containerStatuses?.[0]?.state;
const kindOf = (given: Given): string | undefined => {
  const [kind] = Object.keys(stateOf(given) ?? {});
  return kind;
};
const waiting = (reason: string, message?: string) => ({ waiting: { reason, ...(message && { message }) } });

describe('a container that has no run', () => {
  const INIT = { initContainers: [container('init')] };
  const start = { kind: 'startContainer', container: 'app', attempt: 0 } as Action;
  const mount = { kind: 'mountVolumes' } as const;
  const backOff = 'Back-off pulling image "i": ErrImagePull: no';
  it.each<[string, Given, object]>([
    ['is being created', {}, waiting('ContainerCreating')],
    ['waits for an init container', { spec: INIT }, waiting('PodInitializing')],
    [
      'could not be started',
      { observed: { failures: [failed(start, 'RunContainerError')] } },
      waiting('RunContainerError', 'no'),
    ],
    [
      'waits for the mount of a volume',
      { observed: { failures: [failed(mount, 'FailedMount')] } },
      waiting('ContainerCreating', 'no'),
    ],
    [
      'waits for the mount of a volume in a Pod with init containers',
      { spec: INIT, observed: { failures: [failed(mount, 'FailedMount')] } },
      waiting('PodInitializing', 'no'),
    ],
    [
      'waits for the image of a volume',
      { observed: { failures: [failed(mount, 'ErrImagePull', -1, { image: 'v' })] } },
      waiting('ImagePullBackOff', 'Back-off pulling image "v": ErrImagePull: no'),
    ],
    [
      'failed to pull its image less than 1 s ago',
      { observed: { images: {}, failures: [failed(pull, 'ErrImagePull', -0.999)] } },
      waiting('ErrImagePull', 'no'),
    ],
    [
      'failed to pull its image 1 s ago',
      { observed: { images: {}, failures: [failed(pull, 'ErrImagePull', -1)] } },
      waiting('ImagePullBackOff', backOff),
    ],
    [
      'pulls its image again after a failure',
      { observed: { images: { app: absent }, failures: [failed(pull, 'ErrImagePull', -20)], underWay: [pull] } },
      waiting('ErrImagePull', 'no'),
    ],
    [
      'waits for other pulls after a failure',
      {
        observed: {
          images: { app: absent },
          failures: [failed(pull, 'ErrImagePull', -20)],
          underWay: [pull],
          pulls: { 'pullImage/app/0/i': { state: 'waiting' } },
        },
      },
      waiting('ErrImagePull', 'no'),
    ],
    [
      'has an image with a name that is not valid',
      { observed: { images: {}, failures: [failed(pull, 'InvalidImageName', -5)] } },
      waiting('InvalidImageName', 'no'),
    ],
    [
      'could not look up its image',
      {
        observed: {
          images: {},
          failures: [
            failed(
              { kind: 'checkImage', container: 'app', attempt: 0, image: 'i', mustExist: false },
              'ErrImageNeverPull',
              -5,
            ),
          ],
        },
      },
      waiting('ErrImageNeverPull', 'no'),
    ],
    [
      'waits for other pulls',
      { observed: { images: { app: absent }, underWay: [pull], pulls: { 'pullImage/app/0/i': { state: 'waiting' } } } },
      waiting('ContainerCreating', 'Waiting for other pulls before image "i"'),
    ],
  ])('the state of a container that %s is as expected', (_, given, state) => {
    expect(stateOf(given)).toEqual(state);
  });
  it('the failure of an action on a container is not shown in a Pod that is terminating', () => {
    const observed = { failures: [failed(start, 'RunContainerError')] };
    expect(stateOf({ deleted: 30, ending: ending(30), runs: [], observed })).not.toMatchObject(
      waiting('RunContainerError'),
    );
  });
});

describe('a container that has a run', () => {
  const NEVER = { restartPolicy: 'Never' };
  const ON_FAILURE = { restartPolicy: 'OnFailure' };
  const stopped: Given = {
    runs: [exited('app', 0, -1)],
    memory: { stops: { 'app-0': { at: at(-2), deadline: at(28), restart: true } } },
  };
  const ended: Given = { deleted: 30, ending: ending(30) };
  const HOOK = { containers: [container('app', { lifecycle: { postStart: { exec } } })] };
  const fresh = { sandboxes: [sandbox(0, { ready: false, stopped: true }), sandbox(1)] };
  const lost = { sandboxes: [sandbox(0, { ready: false })] };
  it.each<[string, Given, string]>([
    ['running', { runs: [app] }, 'running'],
    ['running with a long back-off', { runs: [running('app', { backoffSeconds: 300 })] }, 'running'],
    ['in the state unknown', { runs: [running('app', { state: 'unknown' })] }, 'running'],
    ['only created', { runs: [running('app', { state: 'created' })] }, 'waiting'],
    ['running before the end of its postStart hook', { spec: HOOK, runs: [app] }, 'waiting'],
    [
      'running after its postStart hook',
      { spec: HOOK, runs: [app], observed: { hooks: { 'app-0/postStart': {} } } },
      'running',
    ],
    ['stopped and exited with 0, and restarts with OnFailure', { spec: ON_FAILURE, ...stopped }, 'waiting'],
    [
      'stopped and exited with 0, and backs off with OnFailure',
      { spec: ON_FAILURE, ...stopped, runs: [exited('app', 0, -1, { backoffSeconds: 9 })] },
      'waiting',
    ],
    [
      'stopped in a lost sandbox and exited with 0, and restarts with OnFailure',
      { spec: ON_FAILURE, ...stopped, observed: lost },
      'waiting',
    ],
    ['stopped and exited with 0 in a Pod that ends', { spec: ON_FAILURE, ...stopped, ...ended }, 'terminated'],
    ['exited with 0 by itself with OnFailure', { spec: ON_FAILURE, runs: [exited('app', 0, -1)] }, 'terminated'],
    ['exited for good', { spec: NEVER, runs: [exited('app', 1, -1)] }, 'terminated'],
    ['exited in a Pod that ends', { deleted: 30, ending: ending(30), runs: [exited('app', 1, -1)] }, 'terminated'],
    ['exited in a sandbox that was lost', { runs: [exited('app', 1, -1)], observed: lost }, 'terminated'],
    ['exited in an earlier sandbox', { runs: [exited('app', 1, -1)], observed: fresh }, 'waiting'],
    [
      'exited for good in an earlier sandbox',
      { spec: NEVER, runs: [exited('app', 1, -1)], observed: fresh },
      'terminated',
    ],
    [
      'exited in an earlier sandbox of a Pod that ends',
      { deleted: 30, ending: ending(30), runs: [exited('app', 1, -1)], observed: fresh },
      'terminated',
    ],
  ])('the state of a container whose run is %s is as expected', (_, given, kind) => {
    expect(kindOf(given)).toBe(kind);
  });
  it('an init container that succeeded in an earlier sandbox waits for its turn in the new one', () => {
    const given: Given = { spec: { initContainers: [container('init')] }, runs: [exited('init', 0, -9)] };
    const init = (more: Given) =>
      Object.keys(decided({ ...given, ...more }).status?.initContainerStatuses?.[0]?.state ?? {});
    expect([init({}), init({ observed: fresh })]).toEqual([['terminated'], ['waiting']]);
  });
  it('a sidecar that exits with 0 and restarts is shown as terminated, also with OnFailure', () => {
    const spec = { ...ON_FAILURE, initContainers: [container('side', { restartPolicy: 'Always' })] };
    const { status } = decided({ spec, runs: [exited('side', 0, -1)] });
    expect(Object.keys(status?.initContainerStatuses?.[0]?.state ?? {})).toEqual(['terminated']);
  });
  it('a failed postStart hook is shown until the next run starts', () => {
    const observed = { hooks: { 'app-0/postStart': { failure: 'exit code 1' } } };
    const shown = waiting('PostStartHookError', 'exit code 1');
    expect(stateOf({ spec: HOOK, runs: [app], observed })).toEqual(shown);
    expect(stateOf({ spec: HOOK, runs: [exited('app', 1, 0)], observed })).toEqual(shown);
    const backsOff = { spec: HOOK, runs: [exited('app', 1, 0, { backoffSeconds: 20 })], observed };
    expect(stateOf(backsOff)?.waiting?.reason).toBe('CrashLoopBackOff');
  });
});

describe('an entry in its turn', () => {
  const turn = { turn: { entry: 'clean', since: at(0) } };
  const given: Given = {
    spec: { deferContainers: [entry('clean', { restartPolicy: 'OnFailure' })] },
    deleted: 60,
    ending: ending(60, 60, turn),
    runs: [app],
    now: 5,
  };
  const state = (more: Given) => decided({ ...given, ...more }).status?.deferContainerStatuses?.[0]?.state;
  it('an entry that backs off is shown with the delay of its next attempt', () => {
    const runs = [app, exited('clean', 1, 4, { startedAt: at(3), backoffSeconds: 4 })];
    expect(state({ runs })).toEqual(
      waiting('CrashLoopBackOff', 'back-off 4s restarting failed container=clean pod=web_default(u1)'),
    );
    expect(state({ runs, now: 8 })?.waiting?.reason).toBe('ContainerCreating');
  });
  it('an entry shows the number of its last run until its next attempt is announced', () => {
    const count = (more: Given) => decided({ ...given, ...more }).status?.deferContainerStatuses?.[0]?.restartCount;
    const runs = [app, exited('clean', 1, 4, { startedAt: at(3), backoffSeconds: 4 })];
    expect([count({ runs }), count({ runs, now: 8 })]).toEqual([0, 1]);
    expect(count({ runs: [app, running('clean', { attempt: 2 })] })).toBe(2);
    expect(count({ runs: [app, exited('clean', 0, 4, { attempt: 2, startedAt: at(3) })] })).toBe(2);
  });
  it('the failed mount of a volume is shown in the entry', () => {
    const failures = [failed({ kind: 'mountVolumes' }, 'FailedMount', 4)];
    expect(state({ observed: { failures, volumes: 'pending' } })).toEqual(waiting('FailedMount', 'no'));
  });
});

describe('the initialization of a Pod', () => {
  const spec = { initContainers: [container('init')] };
  const done = [exited('init', 0, -1)];
  const end: Given = { deleted: 30, ending: ending(30) };
  const lost = { sandboxes: [sandbox(0, { ready: false })] };
  it.each<[string, boolean, Given]>([
    ['has no init container', true, {}],
    ['runs its init container', false, { spec, runs: [running('init')] }],
    ['has run its init container', true, { spec, runs: done }],
    ['has run its init container and is terminating', false, { ...end, spec, runs: done }],
    ['was initialized before it was terminating', true, { ...end, spec, memory: { initializedInSandbox: 0 } }],
    ['has an app container and is terminating', true, { ...end, spec, runs: [...done, app] }],
    ['has lost its sandbox', false, { spec, runs: done, observed: lost }],
  ])('the memory of a Pod that %s says that it is initialized: %s', (_, isInitialized, given) => {
    expect(decided(given).memory.initializedInSandbox).toBe(isInitialized ? 0 : undefined);
  });
  it('a Pod that was initialized in an earlier sandbox runs its init containers again', () => {
    const given: Given = { spec, memory: { initializedInSandbox: 0 }, observed: { sandboxes: [sandbox(1)] } };
    expect(decided(given).actions).toMatchObject([{ kind: 'startContainer', container: 'init' }]);
    const { actions } = decided({ ...given, observed: {} });
    expect(actions).toMatchObject([{ kind: 'startContainer', container: 'app' }]);
  });
});
