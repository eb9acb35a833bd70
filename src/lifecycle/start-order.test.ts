import { describe, expect, it } from 'vitest';
import type { PodSpec } from '../api/generated/types.ts';
import {
  asked,
  at,
  container,
  decided,
  ending,
  entry,
  exited,
  type Given,
  postExit,
  running,
  sandbox,
} from './fixtures.ts';
import type { ContainerKind } from './types.ts';

const ONE_INIT = { initContainers: [container('init')], containers: [container('app')] };
const TWO_INITS = { initContainers: [container('first'), container('second')], containers: [container('app')] };
const SIDECAR = { initContainers: [container('proxy', { restartPolicy: 'Always' }), container('init')] };
const endedAtStart = (attempt: number, seconds = 0) =>
  sandbox(attempt, { ready: false, stopped: true, createdAt: at(seconds) });
const starts = (given: Given): string[] => asked(decided(given)).filter((line) => line.startsWith('startContainer'));

describe('init containers and apps', () => {
  it.each<[string, Given, string[]]>([
    ['the first init container starts first', { spec: TWO_INITS }, ['startContainer/first/0']],
    ['the second init container waits while the first runs', { spec: TWO_INITS, runs: [running('first')] }, []],
    [
      'the second init container starts once the first has succeeded',
      { spec: TWO_INITS, runs: [exited('first', 0, -1)] },
      ['startContainer/second/0'],
    ],
    [
      'a failed init container restarts, and the next one waits',
      { spec: TWO_INITS, runs: [exited('first', 1, -1)] },
      ['startContainer/first/1'],
    ],
    [
      'all app containers start together once all init containers have succeeded',
      {
        spec: { ...ONE_INIT, containers: [container('app'), container('web')] },
        runs: [exited('init', 0, -1)],
      },
      ['startContainer/app/0', 'startContainer/web/0'],
    ],
    [
      'an init container whose turn is over does not run again while an app container has a run',
      { spec: ONE_INIT, runs: [running('app')] },
      [],
    ],
    [
      'an init container whose run the runtime has lost has had its turn if a later one has a run',
      { spec: TWO_INITS, runs: [exited('second', 0, -1)] },
      ['startContainer/app/0'],
    ],
  ])('%s', (_, given, expected) => {
    expect(starts(given)).toEqual(expected);
  });

  it('a failed init container in a Pod with restartPolicy Never makes the Pod Failed', () => {
    const spec: Partial<PodSpec> = { ...ONE_INIT, restartPolicy: 'Never' };
    const decision = decided({ spec, runs: [exited('init', 1, -1)] });
    expect(decision.actions.map(({ kind }) => kind)).toEqual(['stopSandbox']);
    expect(decision.status?.phase).toBe('Failed');
  });
});

describe('sidecars', () => {
  it.each<[string, Given, string[]]>([
    [
      'an init container after a sidecar starts once the sidecar runs',
      { spec: SIDECAR, runs: [running('proxy')] },
      ['startContainer/init/0'],
    ],
    ['an init container waits for a sidecar that has not started', { spec: SIDECAR }, ['startContainer/proxy/0']],
    [
      'a sidecar that ended restarts while a later init container runs',
      { spec: SIDECAR, runs: [exited('proxy', 0, -1), running('init')] },
      ['startContainer/proxy/1'],
    ],
    [
      'a sidecar restarts while app containers run, regardless of the restart policy',
      { spec: { ...SIDECAR, restartPolicy: 'Never' }, runs: [exited('proxy', 0, -1), running('app')] },
      ['startContainer/proxy/1'],
    ],
  ])('%s', (_, given, expected) => {
    expect(starts(given)).toEqual(expected);
  });

  it('an init container waits for the startup probe of a sidecar', () => {
    const startupProbe = { exec: { command: ['true'] }, failureThreshold: 30 };
    const initContainers = [container('proxy', { restartPolicy: 'Always', startupProbe }), container('init')];
    const given: Given = { spec: { initContainers }, runs: [running('proxy')] };
    expect(asked(decided(given))).toEqual(['runProbe/proxy-0/startup']);
    const probes = { 'proxy-0/startup': { serial: 1, result: 'Success', message: '' } } as const;
    expect(starts({ ...given, observed: { probes } })).toEqual(['startContainer/init/0']);
  });
});

describe('ephemeral containers', () => {
  const spec: Partial<PodSpec> = { ephemeralContainers: [container('debug')] };
  it('an ephemeral container starts while app containers run', () => {
    expect(starts({ spec, runs: [running('app')] })).toEqual(['startContainer/debug/0']);
  });
  it('an ephemeral container never restarts', () => {
    expect(starts({ spec, runs: [running('app'), exited('debug', 1, -1)] })).toEqual([]);
  });
  it('an ephemeral container waits until its target runs, and shares its process namespace', () => {
    const targeted = { ephemeralContainers: [{ ...container('debug'), targetContainerName: 'app' }] };
    const waits = decided({ spec: targeted, runs: [exited('app', 1, -1, { backoffSeconds: 10 })] });
    expect(waits.actions).toEqual([]);
    expect(waits.status?.ephemeralContainerStatuses?.[0]?.state?.waiting).toEqual({
      reason: 'CreateContainerConfigError',
      message: 'target container app is not running',
    });
    const [start] = decided({ spec: targeted, runs: [running('app')] }).actions;
    expect(start).toMatchObject({ kind: 'startContainer', container: 'debug', targetId: 'app-0' });
  });
});

describe('sandbox and volumes', () => {
  it('the sandbox is created and the volumes are mounted at the same time', () => {
    expect(asked(decided({ observed: { sandboxes: [], volumes: 'pending' } }))).toEqual([
      'mountVolumes',
      'createSandbox/0',
    ]);
  });
  it('a container starts only once the volumes are mounted', () => {
    expect(asked(decided({ observed: { volumes: 'pending' } }))).toEqual(['mountVolumes']);
  });
  it('no second sandbox is requested while one is being created', () => {
    const underWay = [{ kind: 'createSandbox', attempt: 0 }] as const;
    expect(asked(decided({ observed: { sandboxes: [], underWay } }))).toEqual([]);
  });
  it('a lost sandbox is stopped before a new one is created', () => {
    expect(asked(decided({ observed: { sandboxes: [sandbox(0, { ready: false })] } }))).toEqual(['stopSandbox/s0']);
    const stopped = sandbox(0, { ready: false, stopped: true });
    expect(asked(decided({ observed: { sandboxes: [stopped] } }))).toEqual(['createSandbox/1']);
  });
  it.each<[string, string[], number | undefined, Given]>([
    ['a sandbox that ended at its start', [], 1, {}],
    ['three of them', [], 4, { observed: { sandboxes: [0, 1, 2].map((attempt) => endedAtStart(attempt)) } }],
    [
      'those since the last start of a container',
      [],
      1,
      { runs: [exited('app', 1, -50)], observed: { sandboxes: [endedAtStart(0), endedAtStart(1)] } },
    ],
    ['a container that was not started', [], 1, { runs: [exited('app', 128, 0, { startedAt: undefined })] }],
    ['a sandbox that lived longer', ['createSandbox/1'], undefined, { observed: { sandboxes: [endedAtStart(0, -2)] } }],
    ['a sandbox in which a container started', ['createSandbox/1'], undefined, { runs: [exited('app', 1, 0)] }],
  ])('a new sandbox waits for a back-off that depends on %s', (_, expected, seconds, given) => {
    const { actions, wakeAt } = decided({ ...given, observed: { sandboxes: [endedAtStart(0)], ...given.observed } });
    expect(asked({ actions })).toEqual(expected);
    expect(wakeAt).toBe(seconds === undefined ? undefined : at(seconds));
  });
  it('at most six of the sandboxes that ended at their start are kept', () => {
    const observed = { sandboxes: [0, 1, 2, 3, 4, 5, 6].map((attempt) => endedAtStart(attempt, -9)) };
    expect(asked(decided({ observed }))).toEqual(['removeSandbox/s1', 'removeSandbox/s0']);
    expect(asked(decided({ observed, now: 1 }))).toContain('createSandbox/7');
  });
  it('containers that still run in a lost sandbox are ended gracefully before it is stopped', () => {
    const observed = { sandboxes: [sandbox(0, { ready: false })] };
    const spec = { containers: [container('app', { lifecycle: { preStop: { exec: { command: ['x'] } } } })] };
    expect(asked(decided({ observed, spec, runs: [running('app')] }))).toEqual(['runHook/app-0/preStop']);
    const hooks = { 'app-0/preStop': {} };
    expect(asked(decided({ observed: { ...observed, hooks }, spec, runs: [running('app')] }))).toEqual([
      'stopContainer/app-0/@30',
    ]);
    expect(asked(decided({ observed, spec, runs: [exited('app', 143, -1)] }))).toEqual(['stopSandbox/s0']);
  });
  it.each([
    ['OnFailure', true],
    ['Never', false],
  ])('with restartPolicy %s, a container that ended with its lost sandbox restarts: %s', (restartPolicy, restart) => {
    const observed = { sandboxes: [sandbox(0, { ready: false })] };
    const { journal } = decided({ observed, spec: { restartPolicy }, runs: [running('app')] });
    expect(journal?.stops['app-0']?.restart).toBe(restart);
  });
  it('in a terminating Pod, an app container that still runs in a lost sandbox has time until the end of the PreExit stage', () => {
    const observed = { sandboxes: [sandbox(0, { ready: false })] };
    const spec = { deferContainers: [entry('pre'), postExit('post')] };
    const so = ending(30, 20, { turn: { entry: 'pre', since: at(0) } });
    const runs = [running('app'), running('pre')];
    expect(asked(decided({ observed, spec, deleted: 30, ending: so, runs, now: 5 }))).toEqual([
      'stopContainer/app-0/@20',
      'stopContainer/pre-0/@7',
    ]);
  });
  it('a run in state unknown in a lost sandbox is killed before the sandbox is stopped', () => {
    const observed = { sandboxes: [sandbox(0, { ready: false })] };
    expect(asked(decided({ observed, runs: [running('app', { state: 'unknown' })] }))).toEqual([
      'stopContainer/app-0/@-60',
    ]);
  });
  it('sidecars in a lost sandbox stop after the app containers', () => {
    const spec = { initContainers: [container('proxy', { restartPolicy: 'Always' })] };
    const observed = { sandboxes: [sandbox(0, { ready: false })] };
    expect(asked(decided({ spec, observed, runs: [running('proxy'), running('app')] }))).toEqual([
      'stopContainer/app-0/@30',
    ]);
  });
  it('a run in state unknown is killed immediately', () => {
    const run = running('app', { state: 'unknown' });
    expect(asked(decided({ runs: [run] }))).toEqual(['stopContainer/app-0/@-60']);
  });
  it('all init containers run again in a new sandbox', () => {
    const observed = { sandboxes: [sandbox(1)] };
    expect(starts({ spec: TWO_INITS, observed, runs: [exited('first', 0, -9), running('app')] })).toEqual([
      'startContainer/first/1',
    ]);
  });
  it('an app container that had ended for good stays ended in a new sandbox', () => {
    const spec: Partial<PodSpec> = { restartPolicy: 'OnFailure', containers: [container('app'), container('job')] };
    const runs = [exited('app', 137, -9), exited('job', 0, -9)];
    expect(starts({ spec, observed: { sandboxes: [sandbox(1)] }, runs })).toEqual(['startContainer/app/1']);
  });
  it('only the last of the earlier sandboxes is kept, for its logs', () => {
    const lost = (attempt: number) => sandbox(attempt, { ready: false, stopped: true });
    const observed = { sandboxes: [lost(0), lost(1), sandbox(2)] };
    const runs = [running('app', { sandboxId: 's2' })];
    expect(asked(decided({ observed, runs }))).toEqual(['removeSandbox/s0']);
  });
  it('an earlier sandbox is kept while it contains the latest run of a container', () => {
    const lost = (attempt: number) => sandbox(attempt, { ready: false, stopped: true });
    const observed = { sandboxes: [lost(0), lost(1), sandbox(2)] };
    const runs = [exited('app', 0, -9, { sandboxId: 's0' })];
    expect(asked(decided({ observed, runs }))).not.toContain('removeSandbox/s0');
  });
});

describe('images ahead of their turn', () => {
  const PULLED: Given = { spec: { ...ONE_INIT, deferContainers: [container('clean')] }, observed: { images: {} } };
  const observed = { images: {} };
  it('the image of the first init container is looked up while the sandbox is created', () => {
    const without = { sandboxes: [], images: {} };
    expect(asked(decided({ spec: ONE_INIT, observed: without }))).toEqual(['createSandbox/0', 'checkImage/init/0/i']);
  });
  it('the images of the next container are looked up but not pulled while an init container runs', () => {
    const images = { app: { state: 'absent', attempt: 0, image: 'i' } } as const;
    expect(asked(decided({ spec: ONE_INIT, observed, runs: [running('init')] }))).toEqual(['checkImage/app/0/i']);
    expect(asked(decided({ spec: ONE_INIT, observed: { images }, runs: [running('init')] }))).toEqual([]);
  });
  it('only images with policy IfNotPresent are looked up ahead of their turn', () => {
    const spec = { ...ONE_INIT, containers: [container('app', { imagePullPolicy: 'Always' })] };
    expect(asked(decided({ spec, observed, runs: [running('init')] }))).toEqual([]);
  });
  it('images of defer containers are looked up once every app container has a run', () => {
    expect(asked(decided({ ...PULLED, runs: [exited('init', 0, -1)] }))).toEqual(['checkImage/app/0/i']);
    expect(asked(decided({ ...PULLED, runs: [running('app')] }))).toEqual(['checkImage/clean/0/i']);
  });
  it('an absent image of a defer container is pulled ahead of its turn', () => {
    const images = { clean: { state: 'absent', attempt: 0, image: 'i' } } as const;
    expect(asked(decided({ ...PULLED, observed: { images }, runs: [running('app')] }))).toEqual([
      'pullImage/clean/0/i',
    ]);
  });
  it('prePullDeferImages false pulls no image of a defer container ahead of its turn', () => {
    const spec = { ...PULLED.spec, prePullDeferImages: false };
    expect(asked(decided({ ...PULLED, spec, runs: [running('app')] }))).toEqual([]);
  });
  it('an entry with imageFrom uses the image of the other container, and looks it up again when it changes', () => {
    const copy = { name: 'clean', imageFrom: 'app', imagePullPolicy: 'IfNotPresent' };
    const spec = { containers: [container('app', { image: 'new' })], deferContainers: [copy] };
    const images = { clean: { state: 'present', attempt: 0, image: 'i', imageId: 'sha' } } as const;
    const runs = [running('app', { image: 'new' })];
    expect(asked(decided({ spec, observed: { images }, runs }))).toEqual(['checkImage/clean/0/new']);
  });
});

describe('a Pod that completes on its own', () => {
  const over = (restartPolicy: string, ...codes: number[]) => {
    const containers = codes.map((_, i) => container(`app-${i}`));
    return decided({ spec: { restartPolicy, containers }, runs: codes.map((code, i) => exited(`app-${i}`, code, -1)) });
  };
  it.each<[string, number[], string]>([
    ['Never', [0, 0], 'Succeeded'],
    ['Never', [0, 1], 'Failed'],
    ['OnFailure', [0, 0], 'Succeeded'],
    ['OnFailure', [0, 1], 'Running'],
    ['Always', [0, 0], 'Running'],
  ])('with restartPolicy %s and exit codes %j, the phase is %s', (policy, codes, phase) => {
    expect(over(policy, ...codes).status?.phase).toBe(phase);
  });
  it('a Pod has finished even if sidecars run, which are then stopped', () => {
    const spec: Partial<PodSpec> = { ...SIDECAR, restartPolicy: 'Never' };
    const { actions } = decided({ spec, runs: [running('proxy'), exited('init', 0, -9), exited('app', 0, -1)] });
    expect(actions).toEqual([{ kind: 'stopContainer', id: 'proxy-0', deadline: at(30) }]);
  });
  it('a finished Pod keeps its containers, and its volumes are unmounted', () => {
    const stopped = { sandboxes: [sandbox(0, { ready: false, stopped: true })] };
    const given = { spec: { restartPolicy: 'Never' }, runs: [exited('app', 0, -1)], observed: stopped };
    expect(asked(decided(given))).toEqual(['unmountVolumes']);
    expect(asked(decided({ ...given, observed: { ...stopped, volumes: 'unmounted' } }))).toEqual([]);
  });
});

it('a started container has the kind of its list in the spec', () => {
  const spec = { ...ONE_INIT, ephemeralContainers: [container('debug')] };
  const kindOf = (given: Given): ContainerKind[] =>
    decided(given).actions.flatMap((action) => (action.kind === 'startContainer' ? [action.containerKind] : []));
  expect(kindOf({ spec })).toEqual(['ephemeral', 'init']);
  expect(kindOf({ spec, runs: [exited('init', 0, -1)] })).toEqual(['ephemeral', 'app']);
});
