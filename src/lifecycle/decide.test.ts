import { describe, expect, it } from 'vitest';
import { decide } from './decide.ts';
import {
  asked,
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
import type { Action, FailedAction } from './types.ts';

const exec = { command: ['true'] };
const app = running('app');
const LIVE = { containers: [container('app', { livenessProbe: { exec, failureThreshold: 1 } })] };
const FAILURE = { serial: 1, result: 'Failure', message: 'no' } as const;
const nodeEnd = (more: object = {}) => ({ reason: 'NodeShutdown', message: 'low', graceSeconds: 30, ...more }) as const;

describe('runs that are ended for a reason of their own', () => {
  const CAUSES: [string, Given][] = [
    ['was removed', { input: { removed: true } }],
    ['is terminating', { ending: ending(30) }],
    ['is terminating according to its status', { status: { termination: { reason: 'Deleted' } as never } }],
    ['was deleted', { deleted: 30 }],
    ['is on a node that ends', { input: { nodeEnd: nodeEnd() as never } }],
  ];
  const image = { containers: [container('app', { image: 'new' })] };
  const observed = { probes: { 'app-0/liveness': FAILURE } };
  it('a failed liveness probe and a changed image end a run of a Pod that is not terminating', () => {
    expect(decided({ spec: LIVE, runs: [app], observed }).memory.stops).toHaveProperty('app-0');
    expect(decided({ spec: image, runs: [app] }).memory.stops).toHaveProperty('app-0');
  });
  it.each(CAUSES)(
    'neither a failed liveness probe nor a changed image ends a run of an app container of a Pod that %s',
    (_, cause) => {
      expect(decided({ ...cause, spec: LIVE, runs: [app], observed }).memory.stops).toEqual({});
      expect(decided({ ...cause, spec: image, runs: [app] }).memory.stops).toEqual({});
    },
  );
  it.each(['created', 'unknown', 'exited'] as const)(
    'a run in the state %s is not ended by a changed image',
    (state) => {
      expect(decided({ spec: image, runs: [running('app', { state, exitCode: 1 })] }).memory.stops).toEqual({});
    },
  );
  it('a failed liveness probe still ends a sidecar of a terminating Pod, and a changed image does not', () => {
    const sidecar = { restartPolicy: 'Always', livenessProbe: { exec, failureThreshold: 1 } } as const;
    const given = (more: object): Given => ({
      spec: { initContainers: [container('proxy', { ...sidecar, ...more })], deferContainers: [entry('clean')] },
      runs: [app, running('proxy')],
      deleted: 30,
      ending: ending(30),
    });
    const probes = { 'proxy-0/liveness': FAILURE };
    expect(decided({ ...given({}), observed: { probes } }).memory.stops).toHaveProperty('proxy-0');
    expect(decided(given({ image: 'new' })).memory.stops).toEqual({});
  });
});

describe('probes of a terminating Pod', () => {
  const probes = { livenessProbe: { exec }, readinessProbe: { exec } };
  const spec = {
    containers: [container('app', probes)],
    initContainers: [container('proxy', { ...probes, restartPolicy: 'Always' })],
    deferContainers: [entry('clean', { livenessProbe: { exec } })],
  };
  const runs = [app, running('proxy'), running('clean')];
  const turn = { turn: { entry: 'clean', since: at(0) } };
  const given: Given = { spec, runs, deleted: 30, ending: ending(30, 30, turn), now: 5 };
  const probed = (more: Given): string[] =>
    asked(decided({ ...given, ...more }))
      .filter((key) => key.startsWith('runProbe'))
      .map((key) => key.slice('runProbe/'.length));
  const readiness = ['app-0/readiness', 'proxy-0/readiness'];
  it('only readiness probes run, except that sidecars and defer containers have all probes while the list is open', () => {
    expect(probed({}).sort()).toEqual(['clean-0/liveness', 'proxy-0/liveness', ...readiness].sort());
  });
  it('only the readiness probe of a sidecar runs once the deadline has passed', () => {
    expect(probed({ now: 30 })).not.toContain('proxy-0/liveness');
    expect(probed({ now: 29.5 })).toContain('proxy-0/liveness');
  });
  it('only the readiness probe of a sidecar runs if the whole list is skipped', () => {
    const skipped = probed({ input: { nodeEnd: nodeEnd({ graceSeconds: 0 }) as never } });
    expect(skipped).not.toContain('proxy-0/liveness');
    expect(skipped).toContain('proxy-0/readiness');
  });
  it('only readiness probes run in a Pod without defer containers', () => {
    const { deferContainers: _, ...others } = spec;
    expect(probed({ spec: others, runs: [app, running('proxy')], ending: ending(30) }).sort()).toEqual(readiness);
  });
});

describe('the end of a Pod', () => {
  const gone = { sandboxes: [sandbox(0, { ready: false, stopped: true })] };
  const finished: Given = {
    spec: { restartPolicy: 'Never' },
    runs: [exited('app', 0, -9)],
    observed: gone,
    ending: ending(30, 30, { reason: 'Completed' }),
  };
  it('the volumes of a Pod that has finished are unmounted once, and its containers are kept', () => {
    expect(asked(decided(finished))).toEqual(['unmountVolumes']);
    expect(asked(decided({ ...finished, observed: { ...gone, volumes: 'unmounted' } }))).toEqual([]);
  });
  it.each<[string, Given]>([
    ['ended because of pressure on the node', { ending: ending(30, 30, { reason: 'NodePressure' }) }],
    [
      'was evicted',
      { input: { nodeEnd: nodeEnd({ evicted: true }) as never }, ending: ending(30, 30, { reason: 'NodeShutdown' }) },
    ],
  ])('the containers of a Pod that %s are removed once its status shows their ends', (_, more) => {
    expect(asked(decided({ ...finished, ...more }))).toEqual(['unmountVolumes']);
    const state = { terminated: { exitCode: 0, containerID: 'containerd://app-0' } };
    const containerStatuses = [{ name: 'app', image: 'i', imageID: '', ready: false, restartCount: 0, state }];
    expect(asked(decided({ ...finished, ...more, status: { containerStatuses } }))).toEqual([
      'unmountVolumes',
      'removeContainer/app-0',
    ]);
    const runs = [exited('app', 0, -9, { id: 'app-0', attempt: 1 }), exited('app', 1, -20, { id: 'older' })];
    const two = { ...finished, ...more, runs, status: { containerStatuses } };
    expect(asked(decided(two))).toEqual(['unmountVolumes', 'removeContainer/older']);
  });
  it('the containers of a Pod that ended with its node are kept', () => {
    const more = {
      input: { nodeEnd: nodeEnd() as never },
      ending: ending(30, 30, { reason: 'NodeShutdown' as const }),
    };
    expect(asked(decided({ ...finished, ...more }))).toEqual(['unmountVolumes']);
  });
  const nothing = { sandboxes: [], containers: [], volumes: 'gone' } as const;
  it.each<[string, Given, string[], boolean]>([
    ['was deleted is removed from the API', { deleted: 30 }, ['finalizeDeletion'], false],
    ['was deleted with a grace period of 0 is done', { deleted: 0 }, [], true],
    ['was removed from the API is done', { deleted: 30, input: { removed: true } }, [], true],
  ])('a Pod of which nothing is left and that %s', (_, more, actions, done) => {
    const decision = decided({ ending: ending(30), ...more, observed: nothing });
    expect([asked(decision), decision.done]).toEqual([actions, done]);
  });
  it('a deleted Pod of which files are left is not done', () => {
    expect(decided({ ending: ending(30), deleted: 0, observed: { ...nothing, volumes: 'unmounted' } }).done).toBe(
      false,
    );
  });
  it('the sandboxes of a deleted Pod, the containers without a sandbox and the files are removed', () => {
    const runs = [exited('app', 0, -9), exited('app', 0, -20, { id: 'old', attempt: 1, sandboxId: 'lost' })];
    const given: Given = { deleted: 30, ending: ending(30), runs };
    const files = ['removeSandbox/s0', 'removeContainer/old', 'removeFiles'];
    expect(asked(decided({ ...given, observed: gone }))).toEqual(files);
    const underWay = [{ kind: 'mountVolumes' }] as const;
    expect(asked(decided({ ...given, observed: { ...gone, underWay } }))).not.toContain('removeFiles');
    expect(asked(decided({ ...given, observed: { ...gone, volumes: 'gone' } }))).toEqual(files.slice(0, 2));
    const parts = [{ sandboxes: [] }, { containers: [] }].map((part) => ({
      ...gone,
      volumes: 'gone' as const,
      ...part,
    }));
    expect(parts.map((observed) => decided({ ...given, deleted: 0, observed }).done)).toEqual([false, false]);
  });
  it('a removed Pod has no status', () => {
    expect(decided({ input: { removed: true } }).status).toBeUndefined();
  });
});

describe('the time of the next decision', () => {
  const pull = { kind: 'pullImage', container: 'app', attempt: 0, image: 'i' } as const;
  const failed = (action: Action, more: Partial<FailedAction> = {}): Given => ({
    observed: {
      images: {},
      failures: [{ action, at: at(-0.4), count: 9, reason: 'ErrImagePull', message: 'no', ...more }],
    },
  });
  const mount = { kind: 'mountVolumes' } as const;
  it.each<[string, Given, number | undefined]>([
    ['1 s after a failed pull', failed(pull), 0.6],
    ['1 s after the failed pull of the image of a volume', failed(mount, { image: 'v' }), 0.6],
    ['not determined by a pull that failed 1 s ago', failed(pull, { at: at(-1) }), undefined],
    ['not determined by a failed mount', failed(mount), undefined],
    ['not determined by a pull whose outcome is unknown', failed(pull, { unknown: true }), undefined],
    ['the end of activeDeadlineSeconds', { spec: { activeDeadlineSeconds: 200 }, runs: [app] }, 100],
  ])('the time of the next decision is %s', (_, given, seconds) => {
    expect(decided({ ...given, status: { startTime: stamp(-100) } }).wakeAt).toBe(
      seconds === undefined ? undefined : at(seconds),
    );
  });
});

it('the step of a stop signal has the deadline of the latest request to stop the run', () => {
  const underWay = [{ kind: 'stopContainer', id: 'app-0', deadline: at(30) }] as const;
  const given: Given = { runs: [app], deleted: 30, memory: { signalledAt: { 'app-0': at(1) } }, now: 20 };
  const deadlineOf = (deadline: number) =>
    decided({ ...given, ending: ending(deadline), observed: { underWay } }).transitions.find(
      ({ type }) => type === 'StopSignal',
    )?.deadline;
  expect([deadlineOf(30), deadlineOf(40)]).toEqual([at(30), at(40)]);
});

describe('the journal', () => {
  const spec = { containers: [container('app', { image: 'new' })] };
  it('the journal is written when it has a new entry, and not again', () => {
    const input = inputOf({ spec, runs: [app] });
    const first = decide(input);
    expect(Object.keys(first.journal?.stops ?? {})).toEqual(['app-0']);
    const later = written(input, first);
    expect(decide(later).journal).toBeUndefined();
    // The run no longer exists, so the new journal lacks its entry. This alone requires no write.
    expect(decide({ ...later, observed: { ...later.observed, containers: [] } }).journal).toBeUndefined();
  });
  it('the journal has the termination and the preStop hooks of runs that exist', () => {
    const hooks = { 'app-0/preStop': {}, 'app-0/postStart': {}, 'gone/preStop': {} };
    const input = inputOf({ runs: [app], deleted: 30, observed: { hooks } });
    const first = decide(input);
    expect(first.journal?.preStops).toEqual({ 'app-0/preStop': {} });
    expect(first.journal?.termination).toMatchObject({ reason: 'Deleted', deadline: at(30) });
    const later = written(input, first);
    expect(decide(later).journal).toBeUndefined();
    const outages = [{ from: at(1), to: at(11) }];
    expect(decide({ ...later, now: at(11), observed: { ...later.observed, outages } }).journal).toBeDefined();
  });
});
