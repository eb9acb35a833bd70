import { describe, expect, it } from 'vitest';
import { asked, at, container, decided, ending, exited, type Given, running } from './fixtures.ts';

const exec = { command: ['true'] };
const HOOK = { containers: [container('app', { lifecycle: { preStop: { exec } } })] };
const STARTS = { containers: [container('app', { lifecycle: { postStart: { exec } } })] };
const runs = [running('app')];

describe('postStart', () => {
  const failed = { 'app-0/postStart': { failure: 'exit code 1' } };
  it('the postStart hook runs once, as soon as the container runs', () => {
    expect(asked(decided({ spec: STARTS, runs }))).toEqual(['runHook/app-0/postStart']);
    expect(asked(decided({ spec: STARTS, runs, observed: { hooks: { 'app-0/postStart': {} } } }))).toEqual([]);
  });
  it('a container whose postStart hook has not ended is waiting and not ready', () => {
    const [status] = decided({ spec: STARTS, runs }).status?.containerStatuses ?? [];
    expect(status).toMatchObject({ ready: false, started: false, state: { waiting: { reason: 'ContainerCreating' } } });
  });
  it('a container whose postStart hook failed is stopped', () => {
    const decision = decided({ spec: STARTS, runs, observed: { hooks: failed } });
    expect(asked(decision)).toEqual(['stopContainer/app-0/@30']);
    expect(decision.status?.containerStatuses?.[0]?.state?.waiting).toEqual({
      reason: 'PostStartHookError',
      message: 'exit code 1',
    });
    expect(decision.events.map(({ reason }) => reason)).toContain('FailedPostStartHook');
  });
  it.each([
    ['OnFailure', true],
    ['Never', false],
  ])('with restartPolicy %s, the container restarts after a failed postStart hook: %s', (restartPolicy, restart) => {
    const decision = decided({ spec: { ...STARTS, restartPolicy }, runs, observed: { hooks: failed } });
    expect(decision.journal?.stops['app-0']?.restart).toBe(restart);
  });
  it('the preStop hook runs before a container with a failed postStart hook is ended', () => {
    const spec = { containers: [container('app', { lifecycle: { postStart: { exec }, preStop: { exec } } })] };
    expect(asked(decided({ spec, runs, observed: { hooks: failed } }))).toEqual(['runHook/app-0/preStop']);
  });
});

describe('which runs have hooks and get new images', () => {
  const stop = { at: at(-1), deadline: at(20), restart: true };
  it.each<[string, Given]>([
    ['that is being ended', { runs, memory: { stops: { 'app-0': stop } } }],
    ['that has got its stop signal', { runs, memory: { signalledAt: { 'app-0': at(-1) } } }],
    ['that was only created', { runs: [running('app', { state: 'created' })] }],
  ])('no postStart hook runs in a container %s', (_, given) => {
    expect(asked(decided({ spec: STARTS, ...given })).filter((key) => key.startsWith('runHook'))).toEqual([]);
  });
  const image = { image: 'new', imagePullPolicy: 'Never' };
  it.each<[string, Given, string | undefined]>([
    [
      'an app container',
      { spec: { containers: [container('app', image)] } },
      'Container app definition changed, will be restarted',
    ],
    [
      'a sidecar',
      { spec: { initContainers: [container('proxy', { ...image, restartPolicy: 'Always' })] } },
      'Init container proxy definition changed',
    ],
    ['an init container', { spec: { initContainers: [container('proxy', image)] } }, undefined],
    ['an ephemeral container', { spec: { ephemeralContainers: [container('proxy', image)] } }, undefined],
  ])('the run of %s is ended for a new image only if the container may get one', (_, given, message) => {
    const { stops } = decided({ ...given, runs: [...runs, running('proxy')] }).memory;
    expect(Object.values(stops).map((each) => each.message)).toEqual(message === undefined ? [] : [message]);
  });
  it('a container without an image in its spec keeps its run', () => {
    const { image: _, ...spec } = container('app');
    expect(decided({ spec: { containers: [spec] }, runs }).memory.stops).toEqual({});
  });
});

describe('preStop', () => {
  it('the stop signal waits for the preStop hook', () => {
    const given: Given = { spec: HOOK, runs, deleted: 30 };
    const decision = decided(given);
    expect(asked(decision)).toEqual(['runHook/app-0/preStop']);
    expect(decision.wakeAt).toBe(at(30));
    const after = decided({ ...given, ending: ending(30), observed: { hooks: { 'app-0/preStop': {} } }, now: 5 });
    expect(asked(after)).toEqual(['stopContainer/app-0/@30']);
  });
  it('the stop signal no longer waits for a preStop hook that failed', () => {
    const hooks = { 'app-0/preStop': { failure: 'no' } };
    expect(asked(decided({ spec: HOOK, runs, deleted: 30, observed: { hooks } }))).toEqual(['stopContainer/app-0/@30']);
  });
  it('a preStop hook that still runs at the end of the grace period is canceled', () => {
    const underWay = [{ kind: 'runHook', container: 'app', id: 'app-0', hook: 'preStop' }] as const;
    const given: Given = { spec: HOOK, runs, deleted: 30, ending: ending(30), observed: { underWay } };
    expect(asked(decided({ ...given, now: 29 }))).toEqual([]);
    expect(asked(decided({ ...given, now: 30 }))).toEqual(['cancel/runHook/app-0/preStop', 'stopContainer/app-0/@32']);
  });
  it('a preStop hook does not run after the stop signal', () => {
    const memory = { signalledAt: { 'app-0': at(1) } };
    const given: Given = { spec: HOOK, runs, deleted: 30, ending: ending(30), memory, now: 3 };
    expect(asked(decided(given))).toEqual(['stopContainer/app-0/@30']);
  });
  it('no preStop hook runs for a container that has exited', () => {
    const spec = { ...HOOK, containers: [...HOOK.containers, container('web')] };
    expect(asked(decided({ spec, runs: [exited('app', 0, -1), running('web')], deleted: 30 }))).toEqual([
      'stopContainer/web-0/@30',
    ]);
  });
});

describe('from signal to kill', () => {
  it.each([
    [0, 30],
    [28, 30],
    [29, 31],
    [30, 32],
    [50, 52],
  ])('a container signaled at %i s of a grace period of 30 s is killed at %i s', (now, kill) => {
    const decision = decided({ runs, deleted: 30, ending: ending(30), now });
    expect(asked(decision)).toEqual([`stopContainer/app-0/@${kill}`]);
    expect(decision.memory.signalledAt).toEqual({ 'app-0': at(now) });
  });
  it('the 2 s between signal and kill count from the first signal', () => {
    const memory = { signalledAt: { 'app-0': at(29) } };
    expect(asked(decided({ runs, deleted: 30, ending: ending(30), memory, now: 30.5 }))).toEqual([
      'stopContainer/app-0/@31',
    ]);
  });
  it('a kill requested before the deadline moved later is canceled', () => {
    const underWay = [{ kind: 'stopContainer', id: 'app-0', deadline: at(30) }] as const;
    const given: Given = { runs, deleted: 30, memory: { signalledAt: { 'app-0': at(1) } }, now: 20 };
    expect(asked(decided({ ...given, ending: ending(40), observed: { underWay } }))).toEqual([
      'cancel/stopContainer/app-0/@30',
      'stopContainer/app-0/@40',
    ]);
  });
  it('a stop with an earlier deadline is requested in addition to the one under way', () => {
    const underWay = [{ kind: 'stopContainer', id: 'app-0', deadline: at(30) }] as const;
    const given: Given = { runs, deleted: 5, memory: { signalledAt: { 'app-0': at(1) } }, now: 2 };
    expect(asked(decided({ ...given, ending: ending(7), observed: { underWay } }))).toEqual(['stopContainer/app-0/@7']);
  });
  it('a container already being stopped when its Pod is deleted keeps its own deadline if that is earlier', () => {
    const stops = { 'app-0': { at: at(-5), deadline: at(10), restart: true } };
    expect(asked(decided({ runs, deleted: 30, memory: { stops } }))).toEqual(['stopContainer/app-0/@10']);
    const late = { 'app-0': { at: at(-5), deadline: at(90), restart: true } };
    expect(asked(decided({ runs, deleted: 30, memory: { stops: late } }))).toEqual(['stopContainer/app-0/@30']);
  });
  it('the first reason to end a run stays', () => {
    const stops = { 'app-0': { at: at(-5), deadline: at(10), restart: false, message: 'first' } };
    const spec = { containers: [container('app', { image: 'new' })] };
    expect(decided({ spec, runs, memory: { stops } }).memory.stops).toEqual(stops);
  });
});
