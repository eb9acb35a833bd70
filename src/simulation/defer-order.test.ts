/** Tests the specified behavior of defer containers (entries) in virtual time: the order of a termination. */
import { describe, expect, it } from 'vitest';
import {
  deadlines,
  deferred,
  deferStates,
  forever,
  type Given,
  lifeOf,
  once,
  post,
  probe,
  steps,
} from './defer-life.ts';

describe('the order of a termination', () => {
  it('the termination is written before any part of it begins', async () => {
    const result = await lifeOf([{}], { statusMillis: 300 });
    const written = result.statuses.find(({ status }) => status.termination !== undefined);
    expect(written?.status.termination).toMatchObject({ reason: 'Deleted', startedAt: expect.any(String) });
    const first = result.trace.find(({ what, name }) => what === 'signal' || name === 'defer-1');
    expect(first?.at).toBeGreaterThan(written?.at ?? 0);
  });

  it('during a deletion readiness still follows the probes', async () => {
    const readinessProbe = { ...probe, periodSeconds: 1, failureThreshold: 1 };
    const result = await lifeOf([{}], {
      pods: { each: { readinessProbe } },
      scripts: { 'defer-1': once(10_000) },
      probe: (_run, aliveMillis) => (aliveMillis < 15_000 ? 'Success' : 'Failure'),
    });
    const shown = result.statuses
      .filter(({ status }) => status.phase === 'Terminating')
      .map(({ status }) => status.conditions?.find(({ type }) => type === 'Ready')?.status);
    expect(shown.filter((ready, i) => ready !== shown[i - 1])).toEqual(['True', 'False']);
  });

  it.each<[string, Given]>([
    ['activeDeadlineSeconds', { pods: { activeDeadlineSeconds: 10 }, deletions: [] }],
    [
      'NodeShutdown',
      { nodeEnd: { at: 10_000, by: { reason: 'NodeShutdown', message: '', graceSeconds: 20 } }, deletions: [] },
    ],
  ])(
    'without a deletionTimestamp the Pod is not Ready from the start of the termination on: %s',
    async (_why, life) => {
      const result = await lifeOf([{}], { ...life, limitMillis: 60_000 });
      const ready = result.statuses.flatMap(({ status: { termination, conditions } }) =>
        termination === undefined ? [] : [conditions?.find(({ type }) => type === 'Ready')?.status],
      );
      expect(new Set(ready)).toEqual(new Set(['False']));
    },
  );

  it('AfterPreExit: hooks of apps start when the last PreExit entry has ended, that of a sidecar when the sidecar stops', async () => {
    const lifecycle = { preStop: { exec: { command: ['do'] } } };
    const result = await lifeOf([{}, post], {
      pods: {
        sidecars: ['side'],
        each: { lifecycle },
        eachSidecar: { lifecycle },
        spec: { preStopPolicy: 'AfterPreExit' },
      },
      scripts: { side: forever, 'defer-1': once(2000), 'defer-2': once(3000) },
      hook: () => ({ millis: 100 }),
    });
    const hooks = result.hooks.map(({ container, at }) => `${container} ${Math.round((at - result.start) / 1000)}`);
    expect(hooks).toEqual(['app 12', 'side 15']);
  });

  it('AfterPreExit: hooks start at the start of the termination if no PreExit entry is due', async () => {
    const lifecycle = { preStop: { exec: { command: ['do'] } } };
    const result = await lifeOf([{ onReasons: ['Evicted'] }, post], {
      pods: { each: { lifecycle }, spec: { preStopPolicy: 'AfterPreExit' } },
      hook: () => ({ millis: 100 }),
    });
    expect(result.hooks.map(({ at }) => Math.round((at - result.start) / 1000))).toEqual([10]);
  });

  it('preStop hooks start immediately; the first PreExit entry does not wait for them, the stop of the app waits for both', async () => {
    const lifecycle = { preStop: { exec: { command: ['do'] } } };
    const result = await lifeOf([{}], { pods: { each: { lifecycle } }, hook: () => ({ millis: 4000 }) });
    const at = (what: string, name: string) =>
      (result.trace.find((each) => each.what === what && each.name === name)?.at ?? 0) - result.start;
    expect((result.hooks[0]?.at ?? 0) - result.start).toBeLessThan(10_100);
    expect(at('start', 'defer-1')).toBeLessThan(10_100);
    expect(at('exit', 'defer-1')).toBeLessThan(11_200);
    expect(at('signal', 'app')).toBeGreaterThanOrEqual(14_000);
  });

  it('preStop hooks of sidecars start immediately too, and stop nothing; that of a restarted sidecar starts at its stop', async () => {
    const lifecycle = { preStop: { exec: { command: ['do'] } } };
    const result = await lifeOf([{}, post], {
      pods: { sidecars: ['side-1', 'side-2'], eachSidecar: { lifecycle } },
      scripts: {
        'side-1': [{ runMillis: 12_000, exitCode: 1 }, ...forever],
        'side-2': forever,
        'defer-1': once(5000),
        'defer-2': once(5000),
      },
      hook: () => ({ millis: 100 }),
    });
    const hooks = result.hooks.map(({ container, at }) => `${container} ${Math.round((at - result.start) / 1000)}`);
    expect(hooks.sort()).toEqual(['side-1 10', 'side-1 20', 'side-2 10']);
    expect(steps(result, 'side-1', 'side-2', 'defer-2')).toEqual([
      'start side-1',
      'start side-2',
      'side-1 exits 1',
      'start side-1#1',
      'start defer-2',
      'defer-2 exits 0',
      'signal side-2',
      'side-2 exits 143',
      'signal side-1#1',
      'side-1 exits 143',
    ]);
  });

  it('an entry may stop the app itself', async () => {
    const result = await lifeOf([{}, post], { scripts: { app: once(10_500), 'defer-1': once(2000) } });
    expect(steps(result)).toEqual([
      'start app',
      'start defer-1',
      'app exits 0',
      'defer-1 exits 0',
      'start defer-2',
      'defer-2 exits 0',
    ]);
  });

  it('app containers are neither probed for liveness nor restarted; sidecars are, until the list has ended', async () => {
    const result = await lifeOf([{}], {
      pods: { sidecars: ['side-1', 'side-2'] },
      scripts: {
        app: once(11_000, 1),
        'side-1': [{ runMillis: 11_500, stopMillis: 10 }, ...forever],
        'side-2': forever,
        'defer-1': once(15_000),
      },
    });
    expect(steps(result, 'app')).toEqual(['start app', 'app exits 1']);
    expect(steps(result, 'side-1', 'side-2', 'defer-1')).toEqual([
      'start side-1',
      'start side-2',
      'start defer-1',
      'side-1 exits 0',
      'start side-1#1',
      'defer-1 exits 0',
      'signal side-2',
      'side-2 exits 143',
      'signal side-1#1',
      'side-1 exits 143',
    ]);
  });

  it('PostExit entries wait until no process of an app container is left', async () => {
    const result = await lifeOf([post], { scripts: { app: [{ stopMillis: 8000 }] } });
    expect(steps(result)).toEqual(['start app', 'signal app', 'app exits 143', 'start defer-1', 'defer-1 exits 0']);
    expect(result.goneAt).toBeGreaterThan(result.start + 19_000);
  });

  it('volumes are unmounted once the list has ended, and not before', async () => {
    const result = await lifeOf([{}, post]);
    const unmounts = result.actions.filter(({ action }) => action.kind === 'unmountVolumes').map(({ at }) => at);
    const lastExit = result.trace.findLast(({ what }) => what === 'exit');
    expect(lastExit?.name).toBe('defer-2');
    expect(Math.min(...unmounts)).toBeGreaterThan(lastExit?.at ?? Number.NaN);
  });

  it('ephemeral containers stop after the list and the sidecars', async () => {
    const [image, imagePullPolicy] = ['busybox:1.28', 'IfNotPresent'];
    const result = await lifeOf([{}, post], {
      pods: { sidecars: ['side'], spec: { ephemeralContainers: [{ name: 'debug', image, imagePullPolicy }] } },
      scripts: { side: forever, debug: forever },
    });
    expect(steps(result).filter((step) => !step.startsWith('start '))).toEqual([
      'defer-1 exits 0',
      'signal app',
      'app exits 143',
      'defer-2 exits 0',
      'signal side',
      'side exits 143',
      'signal debug',
      'debug exits 143',
    ]);
  });

  it('a Pod does not wait for the rest of its grace period once its list and its containers have ended', async () => {
    const result = await lifeOf([{}, post], { deletions: [{ at: 10_000, graceSeconds: 300 }] });
    expect(result.goneAt).toBeLessThan(result.start + 12_500);
  });

  it('at the end of the PreExit stage its entry is stopped, the others are skipped, and PostExit entries run', async () => {
    const result = await lifeOf([{}, {}, post], { scripts: { app: [{}], 'defer-1': [{}] } });
    expect(steps(result)).toEqual([
      'start app',
      'start defer-1',
      'signal defer-1',
      'defer-1 exits 137',
      'signal app',
      'app exits 137',
      'start defer-3',
      'defer-3 exits 0',
    ]);
    const at = (what: string) =>
      result.trace.filter((each) => each.what === what).map((each) => Math.round((each.at - result.start) / 100) / 10);
    expect(at('signal')).toEqual([25, 27]);
    expect(at('exit')).toEqual([27, 29, 30]);
    expect(deferStates(result)).toEqual(['terminated DeadlineExceeded', 'terminated Skipped', 'terminated Completed']);
    const skipped = result.statuses.at(-1)?.status.deferContainerStatuses?.[1]?.state?.terminated;
    expect(skipped).toMatchObject({ exitCode: 137, message: 'the PreExit stage had ended' });
    expect(deferred(result)).toMatchObject({ status: 'False', reason: 'GracePeriodExceeded' });
  });

  it('at the deadline everything that runs is stopped and killed 2 s later, and no further entry starts', async () => {
    const result = await lifeOf([post, post], { scripts: { app: forever, 'defer-1': [{}] } });
    expect(steps(result)).toEqual([
      'start app',
      'signal app',
      'app exits 143',
      'start defer-1',
      'signal defer-1',
      'defer-1 exits 137',
    ]);
    const [signal, exit] = ['signal', 'exit'].map(
      (what) => result.trace.findLast((each) => each.what === what)?.at ?? 0,
    );
    expect(Math.abs((signal ?? 0) - result.start - 40_000)).toBeLessThan(100);
    expect(Math.abs((exit ?? 0) - result.start - 42_000)).toBeLessThan(100);
    expect(deferStates(result)).toEqual(['terminated DeadlineExceeded', 'terminated Skipped']);
    expect(result.goneAt).toBeLessThan(result.start + 42_200);
  });

  it('preStop hooks that still run at the end of the PreExit stage are canceled', async () => {
    const lifecycle = { preStop: { exec: { command: ['do'] } } };
    const result = await lifeOf([post], { pods: { each: { lifecycle } }, hook: () => ({ millis: 60_000 }) });
    const signal = result.trace.find(({ what, name }) => what === 'signal' && name === 'app');
    // Half of the grace period of 30 s is reserved for the PostExit stage.
    expect(Math.round(((signal?.at ?? 0) - result.start) / 1000)).toBe(25);
    expect(deferStates(result)).toEqual(['terminated Completed']);
  });

  it('a second delete with a shorter grace period shortens the deadline, a longer one does not extend it', async () => {
    const result = await lifeOf([{}], {
      scripts: { 'defer-1': [{}] },
      deletions: [
        { at: 10_000, graceSeconds: 60 },
        { at: 12_000, graceSeconds: 5 },
        { at: 13_000, graceSeconds: 100 },
      ],
    });
    expect(deadlines(result)).toEqual([70_000, expect.any(Number)]);
    expect(Math.abs((deadlines(result)[1] ?? 0) - 17_000)).toBeLessThan(1000);
    expect(Math.abs((result.goneAt ?? 0) - result.start - 19_000)).toBeLessThan(1200);
  });
});
