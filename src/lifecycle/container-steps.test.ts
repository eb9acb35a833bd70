import { describe, expect, it } from 'vitest';
import type { PodSpec } from '../api/generated/types.ts';
import { asked, at, container, decided, exited, type Given, running } from './fixtures.ts';
import type { ImageState } from './types.ts';

const next = (spec: Partial<PodSpec>, ...runs: Given['runs'] & object): string[] => asked(decided({ spec, runs }));

describe('restart policy', () => {
  it.each<[string, number, boolean]>([
    ['Always', 0, true],
    ['Always', 1, true],
    ['OnFailure', 0, false],
    ['OnFailure', 1, true],
    ['Never', 0, false],
    ['Never', 1, false],
  ])('with restartPolicy %s, an app container with exit code %i restarts: %s', (restartPolicy, exitCode, again) => {
    const spec = { restartPolicy, containers: [container('app'), container('web')] };
    const expected = again ? ['startContainer/app/1'] : [];
    expect(next(spec, exited('app', exitCode, 0), running('web'))).toEqual(expected);
  });

  it.each<[string, boolean]>([
    ['Always', true],
    ['OnFailure', true],
    ['Never', false],
  ])('with restartPolicy %s, a failed init container restarts: %s', (restartPolicy, again) => {
    const spec = { restartPolicy, initContainers: [container('init')] };
    expect(next(spec, exited('init', 1, 0))).toEqual(again ? ['startContainer/init/1'] : ['stopSandbox/s0']);
  });

  it('under OnFailure, a failed liveness probe restarts a container that exits with 0', () => {
    const spec = { restartPolicy: 'OnFailure', containers: [container('app')] };
    const runs = [exited('app', 0, 0)];
    const stops = { 'app-0': { at: 0, deadline: 0, restart: true } };
    expect(asked(decided({ spec, runs, memory: { stops } }))).toEqual(['startContainer/app/1']);
  });
});

describe('back-off', () => {
  const given: Given = { runs: [exited('app', 1, 0, { backoffSeconds: 20 })] };
  it('a failed container restarts once its back-off has passed', () => {
    const waits = decided({ ...given, now: 19 });
    expect(asked(waits)).toEqual([]);
    expect(waits.wakeAt).toBe(at(20));
    const [start] = decided({ ...given, now: 20 }).actions;
    expect(start).toMatchObject({ kind: 'startContainer', attempt: 1, backoffSeconds: 40 });
  });
  it('a container in back-off is shown as CrashLoopBackOff, with its last termination', () => {
    const [status] = decided({ ...given, now: 5 }).status?.containerStatuses ?? [];
    expect(status?.state?.waiting).toEqual({
      reason: 'CrashLoopBackOff',
      message: 'back-off 20s restarting failed container=app pod=web_default(u1)',
    });
    expect(status?.lastState?.terminated?.exitCode).toBe(1);
  });
  it('the image of the next run is looked up only once the back-off has passed', () => {
    const observed = { images: {} };
    expect(asked(decided({ ...given, observed, now: 19 }))).toEqual([]);
    expect(asked(decided({ ...given, observed, now: 20 }))).toEqual(['checkImage/app/1/i']);
  });
  it('a run that was created but not started is started as the same attempt', () => {
    const [start] = decided({ runs: [running('app', { state: 'created', attempt: 3, backoffSeconds: 40 })] }).actions;
    expect(start).toMatchObject({ kind: 'startContainer', attempt: 3, backoffSeconds: 40 });
  });
  it('the attempt number continues from the status if the runtime has lost the runs', () => {
    const state = { containerID: 'containerd://x', restartCount: 4, lastState: {}, state: {} };
    const containerStatuses = [{ ...state, name: 'app', image: 'i', imageID: 'sha', ready: false }];
    const images = { app: { state: 'present', attempt: 5, image: 'i', imageId: 'sha' } } as const;
    expect(asked(decided({ status: { containerStatuses }, observed: { images } }))).toEqual(['startContainer/app/5']);
  });
});

describe('image policy', () => {
  type Found = 'unknown' | 'absent' | 'present';
  const lookUp = (imagePullPolicy: string, found: Found): Given => {
    const state = found === 'present' ? ({ state: found, imageId: 'sha' } as const) : ({ state: 'absent' } as const);
    const images: Record<string, ImageState> = found === 'unknown' ? {} : { app: { ...state, attempt: 0, image: 'i' } };
    return { spec: { containers: [container('app', { imagePullPolicy })] }, observed: { images } };
  };
  it.each<[string, Found, string]>([
    ['Always', 'unknown', 'pullImage/app/0/i'],
    ['Always', 'absent', 'pullImage/app/0/i'],
    ['Always', 'present', 'startContainer/app/0'],
    ['IfNotPresent', 'unknown', 'checkImage/app/0/i'],
    ['IfNotPresent', 'absent', 'pullImage/app/0/i'],
    ['IfNotPresent', 'present', 'startContainer/app/0'],
    ['Never', 'unknown', 'checkImage/app/0/i'],
    ['Never', 'absent', 'checkImage/app/0/i'],
    ['Never', 'present', 'startContainer/app/0'],
  ])('imagePullPolicy %s with the image %s requests %s', (policy, found, action) => {
    expect(asked(decided(lookUp(policy, found)))).toEqual([action]);
  });
  it.each([
    ['Never', true],
    ['IfNotPresent', false],
  ])('imagePullPolicy %s requires the image to be on the node: %s', (policy, mustExist) => {
    expect(decided(lookUp(policy, 'unknown')).actions).toMatchObject([{ kind: 'checkImage', mustExist }]);
  });
  it('imagePullPolicy Always pulls again for the next attempt', () => {
    const given = lookUp('Always', 'present');
    expect(asked(decided({ ...given, runs: [exited('app', 1, -9)] }))).toEqual(['pullImage/app/1/i']);
  });
  it('an image found under another name does not count', () => {
    const given = lookUp('IfNotPresent', 'present');
    expect(asked(decided({ ...given, spec: { containers: [container('app', { image: 'j' })] } }))).toEqual([
      'checkImage/app/0/j',
    ]);
  });
  it('an image that appears on the node ends the back-off of its pull', () => {
    const given = lookUp('IfNotPresent', 'absent');
    const action = { kind: 'pullImage', container: 'app', attempt: 0, image: 'i' } as const;
    const failures = [{ action, at: 0, count: 9, reason: 'ErrImagePull', message: 'no' }];
    const appeared = new Set(['app']);
    const observed = { ...given.observed, appeared };
    expect(asked(decided({ ...given, observed: { ...observed, failures } }))).toEqual(['checkImage/app/0/i']);
    expect(asked(decided({ ...given, observed: { ...observed, underWay: [action] } }))).toEqual([]);
  });
  it('imagePullPolicy Always pulls even if the image appears on the node', () => {
    const given = lookUp('Always', 'unknown');
    const observed = { ...given.observed, appeared: new Set(['app']) };
    expect(asked(decided({ ...given, observed }))).toEqual(['pullImage/app/0/i']);
  });
});

describe('a replaced image', () => {
  const spec = { containers: [container('app', { image: 'new' })] };
  it('a container whose image has changed is stopped within the grace period', () => {
    const decision = decided({ spec, runs: [running('app')] });
    expect(asked(decision)).toEqual(['stopContainer/app-0/@30']);
    expect(decision.events).toContainEqual({
      type: 'Normal',
      reason: 'Killing',
      fieldPath: 'spec.containers{app}',
      message: 'Container app definition changed, will be restarted',
    });
    expect(decision.journal?.stops['app-0']).toMatchObject({ restart: true, replaced: true });
  });
  it('the new image starts without back-off, even under restartPolicy Never', () => {
    const stops = { 'app-0': { at: 0, deadline: 0, restart: true, replaced: true } } as const;
    const runs = [exited('app', 0, 0, { backoffSeconds: 300 })];
    const given = { spec: { ...spec, restartPolicy: 'Never' }, runs, memory: { stops } };
    expect(decided(given).actions).toMatchObject([{ kind: 'startContainer', image: 'new', backoffSeconds: 0 }]);
  });
  it('an init container whose turn is over does not run again for a new image', () => {
    const init = { initContainers: [container('init', { image: 'new' })] };
    expect(next(init, exited('init', 0, -9), running('app'))).toEqual([]);
  });
  it('a sidecar restarts for a new image', () => {
    const sidecar = { initContainers: [container('proxy', { image: 'new', restartPolicy: 'Always' })] };
    expect(next(sidecar, running('proxy'), running('app'))).toEqual(['stopContainer/proxy-0/@30']);
  });
});

it('only the two newest runs of a container are kept', () => {
  const runs = [3, 2, 1, 0].map((attempt) => exited('app', 1, -9, { attempt, id: `app-${attempt}` }));
  const observed = { images: {} };
  expect(asked(decided({ runs: [running('app', { attempt: 4, id: 'app-4' }), ...runs], observed }))).toEqual([
    'removeContainer/app-2',
    'removeContainer/app-1',
    'removeContainer/app-0',
  ]);
});

it('an older run is removed only once it has exited', () => {
  const old = running('app', { attempt: 0, state: 'unknown' });
  const runs = [
    running('app', { attempt: 3 }),
    exited('app', 1, -9, { attempt: 2 }),
    exited('app', 1, -9, { attempt: 1 }),
    old,
  ];
  expect(asked(decided({ runs }))).toEqual(['removeContainer/app-1']);
});
