import { describe, expect, it } from 'vitest';
import type { ContainerStatus } from '../api/generated/types.ts';
import { at, container, decided, ending, entry, exited, type Given, running, secondsOf, stamp } from './fixtures.ts';
import type { FailedAction } from './types.ts';

/** Returns the start of the next run, in seconds after START, and the back-off stored with that run. */
function restart(given: Given): [startsAt: number, backoffSeconds: number | undefined] {
  const waits = decided(given);
  const startsAt = waits.actions.length > 0 ? at(given.now ?? 0) : (waits.wakeAt ?? 0);
  const start = decided({ ...given, now: secondsOf(startsAt) }).actions.find(({ kind }) => kind === 'startContainer');
  return [secondsOf(startsAt), start?.kind === 'startContainer' ? start.backoffSeconds : undefined];
}

describe('the back-off of app containers', () => {
  it.each<[string, number, number, number, number]>([
    ['the first restart of an app container is immediate', 60, 0, 0, 10],
    ['the second restart of an app container waits 10 s', 60, 10, 10, 20],
    ['the back-off of an app container doubles', 60, 80, 80, 160],
    ['the back-off of an app container is at most 5 min', 60, 160, 160, 300],
    ['the back-off of an app container stays at 5 min', 60, 300, 300, 300],
    ['a run of 10 min resets the back-off', 600, 300, 0, 10],
    ['a run of less than 10 min does not reset the back-off', 599, 300, 300, 300],
  ])('%s', (_, ranSeconds, backoffSeconds, startsAt, nextBackoff) => {
    const run = exited('app', 1, 0, { startedAt: at(-ranSeconds), backoffSeconds });
    expect(restart({ runs: [run] })).toEqual([startsAt, nextBackoff]);
  });
  it('a run that never started counts as a short run for the back-off', () => {
    const { startedAt: _, ...run } = exited('app', 128, 0, { createdAt: at(-900), backoffSeconds: 20 });
    expect(restart({ runs: [run] })).toEqual([20, 40]);
  });
});

describe('the back-off of defer containers', () => {
  it.each<[string, number, number, number]>([
    ['the first restart of a defer container waits 1 s', 1, 1, 2],
    ['the back-off of a defer container doubles', 4, 4, 8],
    ['the back-off of a defer container is at most 10 s', 8, 8, 10],
    ['the back-off of a defer container stays at 10 s', 10, 10, 10],
  ])('%s', (_, backoffSeconds, startsAt, nextBackoff) => {
    const deferContainers = [entry('clean', { restartPolicy: 'OnFailure' })];
    const run = exited('clean', 1, 0, { startedAt: at(-1), backoffSeconds });
    const turn = { entry: 'clean', since: at(-1) };
    const recorded = { name: 'clean', image: 'i', imageID: 'sha', ready: false, containerID: 'containerd://clean-0' };
    const state = { waiting: { reason: 'ContainerCreating' } };
    const given: Given = {
      spec: { deferContainers },
      deleted: 300,
      ending: ending(300, 300, { turn }),
      runs: [running('app'), run],
      status: { deferContainerStatuses: [{ ...recorded, restartCount: 1, state }] },
    };
    expect(restart(given)).toEqual([startsAt, nextBackoff]);
  });
});

describe('containers whose runs the runtime has lost', () => {
  const shown = (name: string, state: ContainerStatus['state']): ContainerStatus => ({
    name,
    image: 'i',
    imageID: 'sha',
    ready: state?.running !== undefined,
    restartCount: 0,
    containerID: `containerd://${name}-0`,
    state,
  });
  const ran = { running: { startedAt: stamp(-50) } };
  const ended = (exitCode: number) => ({ terminated: { exitCode, reason: 'x', containerID: 'containerd://app-0' } });
  const outcomeOf = (restartPolicy: string, state: ContainerStatus['state'], field: 'init' | 'app' = 'app') => {
    const isInit = field === 'init';
    const containers = isInit ? { initContainers: [container('init')] } : {};
    const statuses = isInit
      ? { initContainerStatuses: [shown('init', state)] }
      : { containerStatuses: [shown('app', state)] };
    const { actions, status } = decided({
      spec: { restartPolicy, ...containers },
      status: { phase: isInit ? 'Pending' : 'Running', ...statuses },
      observed: { sandboxes: [], volumes: 'pending' },
    });
    return [actions.some(({ kind }) => kind === 'createSandbox' || kind === 'mountVolumes'), status?.phase];
  };
  it.each<[string, string, ContainerStatus['state'], boolean, string]>([
    ['ran and may never restart has failed', 'Never', ran, false, 'Failed'],
    ['failed and may never restart stays failed', 'Never', ended(3), false, 'Failed'],
    ['succeeded and may never restart stays so', 'Never', ended(0), false, 'Succeeded'],
    ['ran and restarts on failure runs again', 'OnFailure', ran, true, 'Running'],
    ['failed and restarts on failure runs again', 'OnFailure', ended(3), true, 'Running'],
    ['succeeded and restarts on failure stays so', 'OnFailure', ended(0), false, 'Succeeded'],
    ['succeeded and always restarts runs again', 'Always', ended(0), true, 'Running'],
    ['waited and may never restart runs', 'Never', { waiting: { reason: 'ContainerCreating' } }, true, 'Pending'],
  ])('an app container that %s', (_, restartPolicy, state, starts, phase) => {
    const [isStarted, seen] = outcomeOf(restartPolicy, state);
    expect(isStarted).toBe(starts);
    if (!starts) expect(seen).toBe(phase);
  });
  it('an init container that ran and may never restart has failed, and its Pod with it', () => {
    expect(outcomeOf('Never', ran, 'init')).toEqual([false, 'Failed']);
    expect(outcomeOf('OnFailure', ran, 'init')[0]).toBe(true);
    expect(outcomeOf('Never', ended(0), 'init')[0]).toBe(true);
  });
  it('a lost container of a Pod that restarts nothing is shown as ended, while the others run on', () => {
    const { actions, status } = decided({
      spec: { restartPolicy: 'Never', containers: [container('app'), container('other')] },
      runs: [running('other')],
      status: { containerStatuses: [shown('app', ran), shown('other', ran)] },
    });
    expect(actions.filter(({ kind }) => kind === 'startContainer')).toEqual([]);
    expect(status?.phase).toBe('Running');
    expect(status?.containerStatuses).toMatchObject([
      { ready: false, restartCount: 0, state: { terminated: { exitCode: 137, reason: 'ContainerStatusUnknown' } } },
      { state: { running: {} } },
    ]);
  });
});

describe('the back-off of failed actions', () => {
  const pull = { kind: 'pullImage', container: 'app', attempt: 0, image: 'i' } as const;
  const images = { app: { state: 'absent', attempt: 0, image: 'i' } } as const;
  const triedAgainAt = (action: FailedAction['action'], count: number): number => {
    const failures = [{ action, at: at(-2), count, reason: 'ErrImagePull', message: 'no' }];
    const sandboxes = action.kind === 'createSandbox' ? { sandboxes: [] } : {};
    return secondsOf(decided({ observed: { failures, images, ...sandboxes } }).wakeAt ?? 0) + 2;
  };
  it.each([
    [1, 10],
    [2, 20],
    [5, 160],
    [6, 300],
    [20, 300],
  ])('failure %i of a pull is retried after %i s', (count, seconds) => {
    expect(triedAgainAt(pull, count)).toBe(seconds);
  });
  it.each([
    [3, 4],
    [4, 8],
    [5, 10],
    [20, 10],
  ])('failure %i of another action is retried after %i s', (count, seconds) => {
    expect(triedAgainAt({ kind: 'createSandbox', attempt: 0 }, count)).toBe(seconds);
  });
  it('the pull of a volume image backs off like any other pull', () => {
    const failure = { at: at(-2), count: 2, reason: 'ErrImagePull', message: 'no', image: 'v' };
    const failures = [{ action: { kind: 'mountVolumes' } as const, ...failure }];
    const { wakeAt } = decided({ observed: { failures, volumes: 'pending' } });
    expect(secondsOf(wakeAt ?? 0)).toBe(18);
  });
});

it('a container that is not restarted causes no wake-up', () => {
  const spec = { restartPolicy: 'Never', containers: [container('app'), container('web')] };
  expect(decided({ spec, runs: [exited('app', 1, 0), running('web')] }).wakeAt).toBeUndefined();
});
