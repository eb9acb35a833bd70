/**
 * Tests the specified behavior of defer containers (entries) in virtual time: the reasons of terminations, which entries are due, how
 * failed entries affect the phase, and entries that clients give up.
 */
import { describe, expect, it } from 'vitest';
import type { PodCondition } from '../api/generated/types.ts';
import { deferStates, type Given, lifeOf, once, post, steps, termination } from './defer-life.ts';
import type { LifeResult } from './life.ts';

const reasonOf = (result: LifeResult): string | undefined => termination(result)[0]?.reason;
const messages = ({ statuses }: LifeResult): (string | undefined)[] =>
  (statuses.at(-1)?.status.deferContainerStatuses ?? []).map(({ state }) => state?.terminated?.message);
/** The Pod gets the conditions 1 s before its deletion. */
const withConditions = (...conditions: PodCondition[]): Given => ({
  edits: [
    {
      at: 9000,
      edit: (pod) => ({
        ...pod,
        status: { ...pod.status, conditions: [...(pod.status?.conditions ?? []), ...conditions] },
      }),
    },
  ],
});
const said = (reason: string, seconds: number, status = 'True'): PodCondition => ({
  type: 'DeletionReason',
  status,
  reason,
  lastTransitionTime: `2023-11-14T22:13:${seconds}Z`,
});
const disrupted = (seconds: number): PodCondition => ({
  ...said('EvictionByEvictionAPI', seconds),
  type: 'DisruptionTarget',
});

describe('the reason of a deletion', () => {
  it.each(['ScaledDown', 'Replaced', 'OwnerDeleted', 'Evicted', 'Preempted', 'DeadlineExceeded', 'Completed'])(
    'the reason of a deletion is that of the condition DeletionReason: %s',
    async (reason) => {
      const result = await lifeOf([{}], { deletions: [{ at: 10_000, graceSeconds: 30, reason }] });
      expect(reasonOf(result)).toBe(reason);
      expect(steps(result, 'defer-1')).toEqual(['start defer-1', 'defer-1 exits 0']);
    },
  );

  it.each<[string, PodCondition[], string]>([
    ['the later of DeletionReason and DisruptionTarget wins', [said('ScaledDown', 30), disrupted(25)], 'ScaledDown'],
    ['the later of DisruptionTarget and DeletionReason wins', [said('ScaledDown', 25), disrupted(30)], 'Evicted'],
    ['a tie goes to DisruptionTarget', [said('ScaledDown', 30), disrupted(30)], 'Evicted'],
    ['a condition that is False has no effect', [said('ScaledDown', 30, 'False')], 'Deleted'],
  ])('the reason of a deletion: %s', async (_rule, conditions, reason) => {
    expect(reasonOf(await lifeOf([{}], withConditions(...conditions)))).toBe(reason);
  });

  it('the first reason stays, even if the node ends the Pod too', async () => {
    const by = { reason: 'NodeShutdown', message: 'bye', graceSeconds: 8 } as const;
    const result = await lifeOf([{}], { scripts: { 'defer-1': once(5000) }, nodeEnd: { at: 12_000, by } });
    expect(new Set(termination(result).map(({ reason }) => reason))).toEqual(new Set(['Deleted']));
  });

  it('activeDeadlineSeconds no longer counts once a termination has begun', async () => {
    const result = await lifeOf([{}], { pods: { activeDeadlineSeconds: 12 }, scripts: { 'defer-1': once(5000) } });
    expect(reasonOf(result)).toBe('Deleted');
    expect(deferStates(result)).toEqual(['terminated Completed']);
    expect(result.statuses.some(({ status }) => status.reason === 'DeadlineExceeded')).toBe(false);
  });

  it('the reason is Completed if an init container failed for good', async () => {
    const result = await lifeOf([post], {
      pods: { init: ['init'], restartPolicy: 'Never' },
      scripts: { init: once(1000, 1) },
      deletions: [],
      limitMillis: 60_000,
    });
    expect(reasonOf(result)).toBe('Completed');
    expect(steps(result, 'defer-1')).toEqual(['start defer-1', 'defer-1 exits 0']);
  });
});

describe('onReasons', () => {
  it('onReasons skips an entry for all other reasons, which is not a failure', async () => {
    const entries = [{ onReasons: ['ScaledDown'] }, { ...post, onReasons: ['Deleted', 'Evicted'] }, post];
    const result = await lifeOf(entries, { deletions: [{ at: 10_000, graceSeconds: 30, reason: 'ScaledDown' }] });
    expect(deferStates(result)).toEqual(['terminated Completed', 'terminated Skipped', 'terminated Completed']);
    expect(messages(result)[1]).toBe('not due on ScaledDown');
    expect(result.statuses.at(-1)?.status.conditions).toContainEqual(
      expect.objectContaining({ type: 'Deferred', status: 'True', reason: 'DeferContainersSucceeded' }),
    );
  });

  it('entries that are not due reserve no time', async () => {
    const result = await lifeOf([{}, { ...post, onReasons: ['Evicted'] }], { scripts: { 'defer-1': [{}] } });
    const signal = result.trace.find(({ what, name }) => what === 'signal' && name === 'defer-1');
    expect(Math.round(((signal?.at ?? 0) - result.start) / 1000)).toBe(40);
  });
});

describe('when', () => {
  it.each([
    ['Succeeded', 0, 'terminated Completed', undefined],
    ['Succeeded', 3, 'terminated Skipped', 'the app containers did not succeed'],
    ['Failed', 3, 'terminated Completed', undefined],
    ['Failed', 0, 'terminated Skipped', 'the app containers did not fail'],
  ])('when %s depends on the exit codes of the app containers: %i', async (when, exitCode, state, message) => {
    const result = await lifeOf([{ ...post, when }], {
      pods: { apps: ['app', 'other'], restartPolicy: 'Never' },
      scripts: { app: once(2000, exitCode), other: once(1000) },
      deletions: [],
      limitMillis: 60_000,
    });
    expect(deferStates(result)).toEqual([state]);
    if (message !== undefined) expect(messages(result)).toEqual([message]);
  });

  it('when: an app that exits with 143 on its stop signal has failed; native sidecars do not count', async () => {
    const result = await lifeOf([{ ...post, when: 'Failed' }], {
      pods: { sidecars: ['side'] },
      scripts: { side: [{ stopMillis: 10, stopExitCode: 0 }] },
    });
    expect(deferStates(result)).toEqual(['terminated Completed']);
    const graceful = await lifeOf([{ ...post, when: 'Succeeded' }], {
      pods: { sidecars: ['side'] },
      scripts: { side: [{ runMillis: 8000, exitCode: 1 }, {}], app: [{ stopMillis: 10, stopExitCode: 0 }] },
    });
    expect(deferStates(graceful)).toEqual(['terminated Completed']);
  });

  it('when: an app container that never ran has failed', async () => {
    const result = await lifeOf([{ ...post, when: 'Failed' }], {
      pods: { init: ['init'] },
      scripts: { init: [{ stopMillis: 100 }] },
    });
    expect(deferStates(result)).toEqual(['terminated Completed']);
  });
});

describe('failurePolicy FailPod', () => {
  const own = { pods: { restartPolicy: 'Never' }, deletions: [], limitMillis: 60_000 };

  it.each([
    ['FailPod', 1, 'Failed', 'DeferContainerFailed'],
    ['FailPod', 0, 'Succeeded', undefined],
    ['Ignore', 1, 'Succeeded', undefined],
  ])(
    'failurePolicy %s: after an entry that exits with %i, the phase of a Pod that completed on its own is %s',
    async (failurePolicy, exitCode, phase, reason) => {
      const result = await lifeOf([{ failurePolicy }], {
        ...own,
        scripts: { app: once(1000), 'defer-1': once(100, exitCode) },
      });
      expect(result.statuses.at(-1)?.status.phase).toBe(phase);
      expect(result.statuses.at(-1)?.status.reason).toBe(reason);
    },
  );

  it('FailPod: an entry that is not due for the reason or the outcome does not fail the Pod', async () => {
    const entries = [
      { failurePolicy: 'FailPod', onReasons: ['Evicted'] },
      { ...post, failurePolicy: 'FailPod', when: 'Failed' },
    ];
    const result = await lifeOf(entries, { ...own, scripts: { app: once(1000) } });
    expect(result.statuses.at(-1)?.status.phase).toBe('Succeeded');
  });

  it('FailPod: an entry that was given up, or stopped at the end of the grace period, fails the Pod', async () => {
    const scripts = { app: once(1000), 'defer-1': [{}] };
    const givenUp = await lifeOf([{ failurePolicy: 'FailPod' }], {
      ...own,
      scripts,
      skips: [{ at: 3000, entry: 'defer-1' }],
    });
    expect(deferStates(givenUp)).toEqual(['terminated GivenUp']);
    expect(givenUp.statuses.at(-1)?.status).toMatchObject({ phase: 'Failed', reason: 'DeferContainerFailed' });
    const late = await lifeOf([{ failurePolicy: 'FailPod' }], { ...own, scripts });
    expect(late.statuses.at(-1)?.status).toMatchObject({ phase: 'Failed', reason: 'DeferContainerFailed' });
  });
});

describe('an entry that is given up', () => {
  it('a running entry that is given up is stopped and ends with GivenUp, and the list continues', async () => {
    const result = await lifeOf([{}, {}], {
      scripts: { 'defer-1': [{}] },
      skips: [{ at: 12_000, entry: 'defer-1' }],
      statusMillis: 200,
    });
    expect(steps(result, 'defer-1', 'defer-2')).toEqual([
      'start defer-1',
      'signal defer-1',
      'defer-1 exits 137',
      'start defer-2',
      'defer-2 exits 0',
    ]);
    expect(deferStates(result)).toEqual(['terminated GivenUp', 'terminated Completed']);
    const [signal, exit] = ['signal', 'exit'].map((what) => result.trace.find((each) => each.what === what)?.at ?? 0);
    expect((signal ?? 0) - result.start).toBeGreaterThanOrEqual(12_000);
    expect((exit ?? 0) - (signal ?? 0)).toBeGreaterThanOrEqual(1990);
  });

  it('an entry that is given up before its turn is skipped at its turn; one that has ended does not change', async () => {
    const result = await lifeOf([{}, {}, post], {
      scripts: { 'defer-1': once(2000), 'defer-2': once(2000) },
      skips: [
        { at: 11_000, entry: 'defer-3' },
        { at: 13_000, entry: 'defer-1' },
      ],
    });
    expect(steps(result, 'defer-3')).toEqual([]);
    expect(deferStates(result)).toEqual(['terminated Completed', 'terminated Completed', 'terminated Skipped']);
    expect(messages(result)[2]).toBe('given up');
  });

  it('an entry that is given up while no agent runs is ended by the next agent', async () => {
    const result = await lifeOf([{}, {}], {
      scripts: { 'defer-1': [{}] },
      skips: [{ at: 14_000, entry: 'defer-1' }],
      absences: [{ at: 12_000, millis: 10_000 }],
    });
    expect(deferStates(result)).toEqual(['terminated GivenUp', 'terminated Completed']);
  });
});
