/** Tests the specified behavior of defer containers (entries) in virtual time: entries that fail, and extensions of the grace period. */
import { describe, expect, it } from 'vitest';
import { parseTime } from '../machinery/time.ts';
import { VolumeError } from '../node/volumes/volume-error.ts';
import type { RunScript } from '../runtime/simulated/simulated-runtime.ts';
import {
  deadlines,
  deferred,
  deferStates,
  eventsOf,
  type Given,
  lifeOf,
  once,
  post,
  probe,
  stateOf,
  steps,
} from './defer-life.ts';

describe('an entry that fails', () => {
  it('with Never the list continues after a failed entry', async () => {
    const result = await lifeOf([{}, {}], { scripts: { 'defer-1': once(500, 7) } });
    expect(steps(result, 'defer-1', 'defer-2')).toEqual([
      'start defer-1',
      'defer-1 exits 7',
      'start defer-2',
      'defer-2 exits 0',
    ]);
    expect(deferStates(result)).toEqual(['terminated Error', 'terminated Completed']);
    expect(deferred(result)).toMatchObject({
      status: 'False',
      reason: 'DeferContainersFailed',
      message: 'defer containers that failed: [defer-1]',
    });
    expect(eventsOf(result, 'DeferContainerFailed')).toEqual(['DeferContainerFailed spec.deferContainers{defer-1}']);
  });

  it.each(['OnFailure', 'Always'])(
    'with %s a failed entry is retried after 1 s, 2 s, 4 s, 8 s, 10 s, 10 s, until it succeeds',
    async (restartPolicy) => {
      const fails = Array.from({ length: 7 }, (): RunScript => ({ runMillis: 0, exitCode: 1 }));
      const result = await lifeOf([{ restartPolicy }, {}], {
        scripts: { 'defer-1': [...fails, { runMillis: 0 }] },
        deletions: [{ at: 10_000, graceSeconds: 300 }],
      });
      const begun = result.trace.filter(({ what, name }) => what === 'start' && name === 'defer-1').map(({ at }) => at);
      const gaps = begun.slice(1).map((at, i) => Math.round((at - (begun[i] ?? 0)) / 1000));
      expect(gaps).toEqual([1, 2, 4, 8, 10, 10, 10]);
      expect(deferStates(result)).toEqual(['terminated Completed', 'terminated Completed']);
      expect(
        result.statuses.some(
          ({ status }) => stateOf(status.deferContainerStatuses?.[0]?.state) === 'waiting CrashLoopBackOff',
        ),
      ).toBe(true);
      expect(eventsOf(result, 'BackOff').length).toBe(7);
    },
  );

  it('a volume image that cannot be pulled backs off no longer than other failures', async () => {
    const result = await lifeOf([{}], {
      deletions: [{ at: 10_000, graceSeconds: 60 }],
      // After the crash, the next agent mounts the volumes again.
      crashes: [{ action: 5, asked: false }],
      mount: async (tries) => {
        if (tries > 1 && tries < 6) throw new VolumeError('files', 'no such host', 'ErrImagePull', 'far/files:1');
      },
    });
    const tries = result.actions.filter(({ action }) => action.kind === 'mountVolumes').map(({ at }) => at);
    const ending = tries.filter((at) => at >= result.start + 10_000);
    expect(ending.slice(1).map((at, i) => Math.round((at - (ending[i] ?? 0)) / 1000))).toEqual([2, 4, 8]);
    expect(deferStates(result)).toEqual(['terminated Completed']);
  });

  it('a failed entry is retried until the time of its stage has passed', async () => {
    const result = await lifeOf([{ restartPolicy: 'OnFailure' }, post], {
      scripts: { 'defer-1': once(0, 1) },
      deletions: [{ at: 10_000, graceSeconds: 20 }],
    });
    expect(deferStates(result)).toEqual(['terminated Error', 'terminated Completed']);
    const last = result.trace.findLast(({ what, name }) => what === 'start' && name === 'defer-1');
    expect(last?.at).toBeLessThan(result.start + 20_000);
    expect(result.goneAt).toBeLessThan(result.start + 21_500);
  });

  it.each([
    ['Never', 1],
    ['OnFailure', 1],
  ])('the timeoutSeconds of an entry limit all its attempts together (%s)', async (restartPolicy, attempts) => {
    const result = await lifeOf([{ timeoutSeconds: 3, restartPolicy }, {}], { scripts: { 'defer-1': [{}] } });
    expect(steps(result, 'defer-1').filter((step) => step.startsWith('start'))).toHaveLength(attempts);
    expect(deferStates(result)).toEqual(['terminated DeadlineExceeded', 'terminated Completed']);
    expect(deferred(result)?.reason).toBe('DeferContainersFailed');
    expect(result.goneAt).toBeLessThan(result.start + 17_000);
  });

  it('timeoutSeconds count from the exit of the apps, not from the exit of a sidecar that restarts', async () => {
    const result = await lifeOf([{ ...post, timeoutSeconds: 3 }], {
      pods: { sidecars: ['side'] },
      scripts: { side: [{ runMillis: 12_000 }, { runMillis: 200 }, {}], 'defer-1': [{}] },
    });
    const exit = result.trace.find(({ what, name }) => what === 'exit' && name === 'defer-1');
    expect(exit?.at).toBeLessThan(result.start + 15_500);
    expect(deferStates(result)).toEqual(['terminated DeadlineExceeded']);
  });

  it.each([
    ['its timeoutSeconds have passed', { timeoutSeconds: 3 }, 'DeadlineExceeded', 'DeferContainersFailed'],
    ['the deadline of the Pod has passed', {}, 'DeadlineExceeded', 'GracePeriodExceeded'],
    [
      'its liveness probe failed',
      { livenessProbe: { ...probe, failureThreshold: 1 } },
      'Error',
      'DeferContainersFailed',
    ],
  ])('an entry that was stopped has failed even if it exits 0: %s', async (_why, entry, reason, verdict) => {
    const life: Given = {
      // Agents crash at actions. The readiness probe of the app causes actions while the entry stops.
      pods: { each: { readinessProbe: { ...probe, periodSeconds: 1 } } },
      scripts: { 'defer-1': [{ stopMillis: 1020, stopExitCode: 0 }] },
      probe: ({ probe: kind }) => (kind === 'readiness' ? 'Success' : 'Failure'),
      deletions: [{ at: 10_000, graceSeconds: 10 }],
    };
    const whole = await lifeOf([entry], life);
    const stop = whole.actions.findIndex(({ action }) => action.kind === 'stopContainer') + 1;
    expect(stop).toBeGreaterThan(0);
    const crashed = [stop, stop + 1, stop + 2].map((action) =>
      lifeOf([entry], { ...life, crashes: [{ action, asked: false }] }),
    );
    for (const result of [whole, ...(await Promise.all(crashed))]) {
      expect(steps(result, 'defer-1')).toEqual(['start defer-1', 'signal defer-1', 'defer-1 exits 0']);
      expect(deferStates(result)).toEqual([`terminated ${reason}`]);
      expect(deferred(result)?.reason).toBe(verdict);
    }
  });

  it('an entry that exits 0 on its own at the last moment has completed', async () => {
    for (const [entry, graceSeconds] of [
      [{ timeoutSeconds: 3 }, 30],
      [{}, 3],
    ] as const) {
      const result = await lifeOf([entry], {
        scripts: { 'defer-1': once(2960) },
        deletions: [{ at: 10_000, graceSeconds }],
      });
      expect(steps(result, 'defer-1')).toEqual(['start defer-1', 'defer-1 exits 0']);
      expect(deferStates(result)).toEqual(['terminated Completed']);
    }
  });

  it('timeoutSeconds also end the wait for the next attempt', async () => {
    const result = await lifeOf([{ timeoutSeconds: 3, restartPolicy: 'OnFailure' }, {}], {
      scripts: { 'defer-1': once(900, 1) },
    });
    expect(steps(result, 'defer-1').filter((step) => step.startsWith('start'))).toHaveLength(2);
    expect(deferStates(result)).toEqual(['terminated DeadlineExceeded', 'terminated Completed']);
  });

  it('an entry that its timeoutSeconds ended is not retried while the sidecars stop', async () => {
    const result = await lifeOf([{ ...post, timeoutSeconds: 3, restartPolicy: 'OnFailure' }], {
      pods: { sidecars: ['side'] },
      scripts: { 'defer-1': [{}], side: [{ stopMillis: 10 }] },
      statusMillis: 200,
    });
    expect(steps(result, 'side', 'defer-1')).toEqual([
      'start side',
      'start defer-1',
      'signal defer-1',
      'defer-1 exits 137',
      'signal side',
      'side exits 143',
    ]);
    expect(deferStates(result)).toEqual(['terminated DeadlineExceeded']);
  });

  it('an image that cannot be pulled, with Never: the list continues, and the status has the reason', async () => {
    const result = await lifeOf([{ image: 'missing:1' }, {}], { pullable: (reference) => reference !== 'missing:1' });
    expect(steps(result, 'defer-1', 'defer-2')).toEqual(['start defer-2', 'defer-2 exits 0']);
    const [first] = result.statuses.at(-1)?.status.deferContainerStatuses ?? [];
    expect(first?.state?.terminated).toMatchObject({ reason: 'Error', exitCode: 128 });
    expect(first?.state?.terminated?.message).toContain('missing:1: not found');
    expect(result.goneAt).toBeLessThan(result.start + 12_500);
  });

  it('an image that cannot be pulled, with OnFailure: the entry is retried within its timeout', async () => {
    const result = await lifeOf([{ image: 'missing:1', restartPolicy: 'OnFailure', timeoutSeconds: 5 }, {}], {
      pullable: (reference) => reference !== 'missing:1',
    });
    expect(
      result.actions.filter(({ at, action }) => action.kind === 'pullImage' && at >= result.start + 10_000).length,
    ).toBeGreaterThan(1);
    expect(deferStates(result)).toEqual(['terminated DeadlineExceeded', 'terminated Completed']);
  });

  it('an entry whose liveness probe failed ends within 2 s, and the list continues or the entry is retried', async () => {
    const livenessProbe = { ...probe, periodSeconds: 1, failureThreshold: 2 };
    const given = {
      scripts: { 'defer-1': [{}] },
      probe: () => 'Failure' as const,
      deletions: [{ at: 10_000, graceSeconds: 100 }],
    };
    const never = await lifeOf([{ livenessProbe }, {}], given);
    expect(deferStates(never)).toEqual(['terminated Error', 'terminated Completed']);
    expect(never.goneAt).toBeLessThan(never.start + 16_000);
    const scripts = { 'defer-1': [{}, { runMillis: 500 }] };
    const retried = await lifeOf([{ livenessProbe, restartPolicy: 'OnFailure' }, {}], { ...given, scripts });
    expect(deferStates(retried)).toEqual(['terminated Completed', 'terminated Completed']);
  });

  it('a failed entry never restarts the Pod and does not change its phase', async () => {
    const result = await lifeOf([{}, post], {
      pods: { restartPolicy: 'Never' },
      scripts: { app: once(1000), 'defer-1': once(0, 1), 'defer-2': once(0, 1) },
      deletions: [],
      limitMillis: 60_000,
    });
    expect(result.statuses.at(-1)?.status.phase).toBe('Succeeded');
    expect(steps(result, 'app')).toEqual(['start app', 'app exits 0']);
  });
});

describe('extensions of the grace period', () => {
  it('an extension by liveness moves a stage to the last success + periodSeconds + timeoutSeconds when it ends, until the entry ends', async () => {
    const result = await lifeOf([{ livenessProbe: { ...probe, periodSeconds: 5 } }, post], {
      pods: { spec: { deferContainerGracePeriodExtension: true }, graceSeconds: 10 },
      deletions: [{ at: 10_000, graceSeconds: 10 }],
      scripts: { 'defer-1': once(33_000) },
    });
    expect(deferStates(result)).toEqual(['terminated Completed', 'terminated Completed']);
    const moved = deadlines(result);
    expect(moved.length).toBeGreaterThan(4);
    for (const [i, deadline] of moved.slice(1).entries()) {
      expect(deadline - (moved[i] ?? 0)).toBeGreaterThan(0);
      expect(deadline - (moved[i] ?? 0)).toBeLessThanOrEqual(6100);
    }
    expect(eventsOf(result, 'ExtendGracePeriod')).toHaveLength(moved.length - 1);
    expect(eventsOf(result, 'ExtendGracePeriod')[0]).toBe('ExtendGracePeriod spec.deferContainers{defer-1}');
    expect(parseTime(result.pod.metadata.deletionTimestamp)).toBe(result.start + 20_000);
  });

  it('an extension by liveness requires a succeeding probe', async () => {
    const pods = { spec: { deferContainerGracePeriodExtension: true } };
    const scripts = { 'defer-1': [{}] };
    const deletions = [{ at: 10_000, graceSeconds: 10 }];
    const none = await lifeOf([{}], { pods, scripts, deletions });
    expect(deadlines(none)).toEqual([20_000]);
    expect(none.goneAt).toBeLessThan(none.start + 22_300);
    const failing = await lifeOf([{ livenessProbe: { ...probe, periodSeconds: 4, failureThreshold: 3 } }], {
      pods,
      scripts,
      deletions,
      probe: (_run, alive) => (alive < 12_000 ? 'Success' : 'Failure'),
    });
    expect(failing.goneAt).toBeLessThan(failing.start + 28_500);
  });

  it('an extension by count moves the deadline when it passes while entries are due, by the interval, at most count times', async () => {
    const result = await lifeOf([{}], {
      pods: { spec: { deferContainerGracePeriodExtensionInterval: 7, deferContainerGracePeriodExtensionCount: 3 } },
      deletions: [{ at: 10_000, graceSeconds: 10 }],
      scripts: { 'defer-1': [{}] },
    });
    expect(deadlines(result).map((at) => Math.round(at / 1000))).toEqual([20, 27, 34, 41]);
    expect(eventsOf(result, 'ExtendGracePeriod')).toHaveLength(3);
    expect(Math.abs((result.goneAt ?? 0) - result.start - 43_000)).toBeLessThan(300);
  });

  it('an extension by count requires a due entry of the stage, even if an app stops slowly', async () => {
    const spec = { deferContainerGracePeriodExtensionInterval: 7, deferContainerGracePeriodExtensionCount: 3 };
    const deletions = [{ at: 10_000, graceSeconds: 10 }];
    const done = await lifeOf([{}], { pods: { spec }, deletions, scripts: { app: [{}] } });
    expect(deadlines(done)).toEqual([20_000]);
    const due = await lifeOf([post], { pods: { spec }, deletions, scripts: { app: [{ stopMillis: 15_000 }] } });
    // The app is killed when the PreExit stage ends: no entry of that stage is due, so the stage is not extended.
    expect(steps(due)).toEqual(['start app', 'signal app', 'app exits 137', 'start defer-1', 'defer-1 exits 0']);
    expect(deadlines(due)[0]).toBe(20_000);
    expect(deadlines(due).at(-1)).toBeLessThan(20_100);
  });

  it.each(['NodePressure', 'NodeShutdown'] as const)(
    'no extension applies to a termination by %s, or to a grace period of 1 s',
    async (reason) => {
      const scripts = { 'defer-1': [{}] };
      const specs = [
        { deferContainerGracePeriodExtension: true },
        { deferContainerGracePeriodExtensionInterval: 7, deferContainerGracePeriodExtensionCount: 3 },
      ];
      for (const spec of specs) {
        const entry = { livenessProbe: { ...probe, periodSeconds: 1 } };
        const nodeEnd = { at: 10_000, by: { reason, message: 'low', graceSeconds: 10 } };
        const byNode = await lifeOf([entry], { pods: { spec }, scripts, nodeEnd, deletions: [], limitMillis: 60_000 });
        expect(deadlines(byNode)).toEqual([20_000]);
        const now = await lifeOf([entry], { pods: { spec }, scripts, deletions: [{ at: 10_000, graceSeconds: 1 }] });
        expect(deadlines(now)).toEqual([11_000]);
      }
    },
  );

  it("both kinds of extensions are limited by the node's maxGracePeriodExtensionSeconds", async () => {
    const given = {
      deletions: [{ at: 10_000, graceSeconds: 10 }],
      scripts: { 'defer-1': [{}] },
      maxGracePeriodExtensionSeconds: 12,
    };
    const count = await lifeOf([{}], {
      pods: { spec: { deferContainerGracePeriodExtensionInterval: 7, deferContainerGracePeriodExtensionCount: 30 } },
      ...given,
    });
    expect(deadlines(count)).toEqual([20_000, 27_000, 32_000]);
    const liveness = await lifeOf([{ livenessProbe: { ...probe, periodSeconds: 5 } }], {
      pods: { spec: { deferContainerGracePeriodExtension: true } },
      ...given,
    });
    expect(deadlines(liveness).at(-1)).toBeLessThanOrEqual(32_000);
    expect(liveness.goneAt).toBeLessThan(liveness.start + 34_300);
  });

  it('a moved deadline is written to the Pod before it takes effect', async () => {
    const result = await lifeOf([{}], {
      pods: { spec: { deferContainerGracePeriodExtensionInterval: 7, deferContainerGracePeriodExtensionCount: 1 } },
      deletions: [{ at: 10_000, graceSeconds: 10 }],
      scripts: { 'defer-1': [{}] },
      statusMillis: 3000,
    });
    const moved = result.statuses.find(({ status }) => (status.termination?.extendedSeconds ?? 0) > 0);
    expect(deadlines(result)).toEqual([20_000, 27_000]);
    const signal = result.trace.find(({ what, name }) => what === 'signal' && name === 'defer-1');
    expect(signal?.at).toBeGreaterThan(moved?.at ?? Number.NaN);
    expect(Math.abs((signal?.at ?? 0) - result.start - 27_000)).toBeLessThan(100);
  });
});
