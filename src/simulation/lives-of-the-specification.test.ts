/**
 * Tests the example lives in the specification of defer containers: their steps must occur at the seconds in its table. Times count from
 * T0, the first value of status.termination.startedAt, and are rounded to 0.1 s.
 */
import { describe, expect, it } from 'vitest';
import type { DeferContainer } from '../api/generated/types.ts';
import { parseTime } from '../machinery/time.ts';
import { type Given, lifeOf } from './defer-life.ts';
import type { LifeResult } from './life.ts';

const DELETED_AT = 10_000;
const check = { exec: { command: ['check'] } };
const hangs = [{}];
const ends = (seconds: number) => [{ runMillis: seconds * 1000 }];

const startOf = ({ statuses }: LifeResult): number =>
  parseTime(statuses.find(({ status }) => status.termination !== undefined)?.status.termination?.startedAt) ??
  Number.NaN;
const seconds = (millis: number): number => Math.round(millis / 100) / 10;
/** Returns the steps from the deletion on, such as `defer-1 TERM 15`, in seconds from T0. KILL is a forced exit, `ends` any other exit. */
const stepsOf = (result: LifeResult): string[] =>
  result.trace.flatMap(({ at, what, name, cause }) => {
    const step = { signal: 'TERM', start: 'starts', exit: cause === 'kill' ? 'KILL' : 'ends' }[what as string];
    return step === undefined || at < result.start + DELETED_AT
      ? []
      : [`${name} ${step} ${seconds(at - startOf(result))}`];
  });
/** Returns the successive values of S (preExitDeadline) or D (deadline) in the statuses, in seconds from T0. */
const shown = (result: LifeResult, field: 'preExitDeadline' | 'deadline'): number[] =>
  result.statuses
    .flatMap(({ status: { termination } }) =>
      termination === undefined ? [] : seconds((parseTime(termination[field]) ?? Number.NaN) - startOf(result)),
    )
    .filter((time, index, all) => time !== all[index - 1]);
const goneAfter = (result: LifeResult): number => seconds((result.goneAt ?? Number.NaN) - startOf(result));

const a: { defers: Partial<DeferContainer>[]; life: Given } = {
  defers: [{ timeoutSeconds: 20 }, { trigger: 'PostExit', timeoutSeconds: 5 }, { trigger: 'PostExit' }],
  life: { scripts: { app: hangs, 'defer-1': hangs, 'defer-2': ends(4.95), 'defer-3': hangs } },
};

describe('the lives of the specification', () => {
  it('life a: an app that ignores SIGTERM, a PreExit entry that hangs, two PostExit entries', async () => {
    const result = await lifeOf(a.defers, a.life);
    expect(shown(result, 'preExitDeadline')).toEqual([15]);
    expect(shown(result, 'deadline')).toEqual([30, 34]);
    expect(stepsOf(result)).toEqual([
      'defer-1 starts 0',
      'defer-1 TERM 15',
      'defer-1 KILL 17',
      'app TERM 17',
      'app KILL 19',
      'defer-2 starts 19',
      'defer-2 ends 24',
      'defer-3 starts 24',
      'defer-3 TERM 34',
      'defer-3 KILL 36',
    ]);
  });

  it('life a: the first PostExit entry hangs: it is killed 2 s after its timeoutSeconds', async () => {
    const result = await lifeOf(a.defers, { ...a.life, scripts: { ...a.life.scripts, 'defer-2': hangs } });
    expect(stepsOf(result).slice(5)).toEqual([
      'defer-2 starts 19',
      'defer-2 TERM 24',
      'defer-2 KILL 26',
      'defer-3 starts 26',
      'defer-3 TERM 34',
      'defer-3 KILL 36',
    ]);
  });

  it('life b: the same as life a, with an extension by count, 2 times 10 s', async () => {
    const spec = { deferContainerGracePeriodExtensionInterval: 10, deferContainerGracePeriodExtensionCount: 2 };
    const result = await lifeOf(a.defers, { ...a.life, pods: { spec } });
    expect(shown(result, 'preExitDeadline')).toContain(25);
    expect(shown(result, 'deadline')).toEqual([30, 40, 50]);
    expect(stepsOf(result)).toEqual([
      'defer-1 starts 0',
      'defer-1 TERM 20',
      'defer-1 KILL 22',
      'app TERM 22',
      'app KILL 25',
      'defer-2 starts 25',
      'defer-2 ends 30',
      'defer-3 starts 30',
      'defer-3 TERM 50',
      'defer-3 KILL 52',
    ]);
  });

  it('life c: an extension by liveness: an entry that runs 40 s ends on its own, the next has its minimum, the reserve is unchanged', async () => {
    const result = await lifeOf([{ livenessProbe: { ...check, periodSeconds: 2 } }, {}, { trigger: 'PostExit' }], {
      pods: { spec: { deferContainerGracePeriodExtension: true } },
      scripts: { 'defer-1': ends(40), 'defer-2': hangs, 'defer-3': hangs },
    });
    const steps = stepsOf(result);
    expect(steps.slice(0, 3)).toEqual(['defer-1 starts 0', 'defer-1 ends 40', 'defer-2 starts 40']);
    const at = (step: string): number =>
      Number(
        steps
          .find((each) => each.startsWith(step))
          ?.split(' ')
          .at(-1),
      );
    // defer-2, which has no liveness probe, has at least 10 s.
    expect(at('defer-2 TERM')).toBe(50);
    // The reserve R is half of the grace period of 30 s.
    expect(at('defer-3 TERM') - at('defer-3 starts')).toBeGreaterThanOrEqual(15 - 0.1);
    const [S, D] = [shown(result, 'preExitDeadline').at(-1) ?? 0, shown(result, 'deadline').at(-1) ?? 0];
    expect(D - S).toBeGreaterThanOrEqual(15);
  });

  it('life d: a second delete with a grace period of 5 s at 10 s, of which the API leaves 1 s', async () => {
    const result = await lifeOf(a.defers, {
      ...a.life,
      scripts: { ...a.life.scripts, 'defer-2': hangs },
      deletions: [
        { at: DELETED_AT, graceSeconds: 30 },
        { at: DELETED_AT + 10_000, graceSeconds: 5 },
      ],
    });
    expect(shown(result, 'preExitDeadline')).toEqual([15, 9]);
    expect(stepsOf(result).slice(0, 8)).toEqual([
      'defer-1 starts 0',
      'defer-1 TERM 10',
      'defer-1 KILL 12',
      'app TERM 12',
      'app KILL 14',
      'defer-2 starts 14',
      'defer-2 TERM 16',
      'defer-2 KILL 18',
    ]);
  });

  it('life e: no agent runs from 3 s to 50 s, with a sidecar and hooks after the PreExit entries', async () => {
    const lifecycle = { preStop: check };
    const result = await lifeOf([{}, { trigger: 'PostExit' }], {
      pods: {
        sidecars: ['side'],
        each: { lifecycle },
        eachSidecar: { lifecycle },
        spec: { preStopPolicy: 'AfterPreExit' },
      },
      scripts: { side: [{ stopMillis: 100 }], 'defer-1': ends(60), 'defer-2': ends(14) },
      hook: () => ({ millis: 1000 }),
      absences: [{ at: DELETED_AT + 3000, millis: 47_000 }],
    });
    const moves = (shown(result, 'preExitDeadline').at(-1) ?? 0) - 15;
    expect(moves).toBeGreaterThanOrEqual(47);
    expect(moves).toBeLessThanOrEqual(57);
    expect(shown(result, 'deadline').map((D) => D - 30)).toContain(moves);
    const hooks = result.hooks.map(({ container, at }) => `${container} ${Math.round(seconds(at - startOf(result)))}`);
    expect(hooks).toEqual(['app 60', 'side 75']);
    expect(result.pod.status?.deferContainerStatuses?.map(({ state }) => state?.terminated?.reason)).toEqual([
      'Completed',
      'Completed',
    ]);
    const sideAt = result.trace.find(({ what, name }) => what === 'signal' && name === 'side')?.at;
    expect(sideAt).toBeGreaterThan(
      result.trace.find(({ what, name }) => what === 'exit' && name === 'defer-2')?.at ?? 0,
    );
  });

  it('life f: a node shutdown leaves 10 s to a Pod with a grace period of 60 s and a reserve of 30 s', async () => {
    const spec = {
      postExitGracePeriodSeconds: 30,
      deferContainerGracePeriodExtensionInterval: 10,
      deferContainerGracePeriodExtensionCount: 3,
    };
    const result = await lifeOf([{}, { trigger: 'PostExit' }], {
      pods: { graceSeconds: 60, spec },
      scripts: { 'defer-1': hangs, 'defer-2': hangs },
      nodeEnd: { at: DELETED_AT, by: { reason: 'NodeShutdown', message: 'bye', graceSeconds: 10 } },
      deletions: [],
      limitMillis: 60_000,
    });
    expect(shown(result, 'preExitDeadline')).toEqual([5]);
    // The app ends at 7.1 s, just after its signal: the PostExit stage has 5 s from then on.
    expect(shown(result, 'deadline')).toEqual([10, 12.1]);
    expect(stepsOf(result)).toEqual([
      'defer-1 starts 0',
      'defer-1 TERM 5',
      'defer-1 KILL 7',
      'app TERM 7',
      'app ends 7.1',
      'defer-2 starts 7.1',
      'defer-2 TERM 12.1',
      'defer-2 KILL 14.1',
    ]);
  });

  it('life g: kubectl delete --now leaves 2 s between each signal and its kill', async () => {
    const result = await lifeOf([{}, { trigger: 'PostExit' }], {
      scripts: { app: hangs, 'defer-1': hangs, 'defer-2': hangs },
      deletions: [{ at: DELETED_AT, graceSeconds: 1 }],
    });
    const [signals, kills] = ['TERM', 'KILL'].map((what) =>
      stepsOf(result)
        .filter((step) => step.includes(what))
        .map((step) => Number(step.split(' ').at(-1))),
    );
    expect(signals?.length).toBeGreaterThanOrEqual(2);
    expect(result.trace.some(({ what, name }) => what === 'start' && name === 'defer-2')).toBe(true);
    expect(kills).toEqual(signals?.map((at) => expect.closeTo(at + 2, 1)));
    expect(goneAfter(result)).toBeLessThan(9.2);
  });
});
