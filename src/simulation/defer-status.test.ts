/** Tests the specified behavior of defer containers (entries) in virtual time: status and Events, images, and agent crashes. */
import { describe, expect, it } from 'vitest';
import { deadlines, deferred, deferStates, eventsOf, lifeOf, once, post, stateOf } from './defer-life.ts';
import type { LifeResult } from './pod-life.ts';

describe('status and events', () => {
  it('before termination every entry waits with the reason PodRunning', async () => {
    const { statuses, start } = await lifeOf([{}, post]);
    for (const { at, status } of statuses)
      if (at < start + 10_000)
        expect(status.deferContainerStatuses?.map(({ state }) => stateOf(state))).toEqual([
          'waiting PodRunning',
          'waiting PodRunning',
        ]);
  });

  it('during termination, entries wait with PendingDefer, run, and end; the phase is Terminating while the list is due or runs', async () => {
    const result = await lifeOf([{}, {}, post], { scripts: { app: [{ stopMillis: 3000 }] } });
    const seen = result.statuses
      .filter(({ status }) => status.termination !== undefined)
      .map(
        ({ status }) =>
          `${status.phase} ${status.deferContainerStatuses?.map(({ state }) => stateOf(state)).join(', ')}`,
      );
    expect(seen.filter((text, i) => text !== seen[i - 1])).toEqual([
      'Terminating waiting ContainerCreating, waiting PendingDefer, waiting PendingDefer',
      'Terminating running, waiting PendingDefer, waiting PendingDefer',
      'Terminating terminated Completed, waiting ContainerCreating, waiting PendingDefer',
      'Terminating terminated Completed, running, waiting PendingDefer',
      'Terminating terminated Completed, terminated Completed, waiting PendingDefer',
      'Terminating terminated Completed, terminated Completed, waiting ContainerCreating',
      'Terminating terminated Completed, terminated Completed, running',
      'Running terminated Completed, terminated Completed, terminated Completed',
      'Failed terminated Completed, terminated Completed, terminated Completed',
    ]);
  });

  it('the end of an entry stays as it was decided, no matter how long the write of the status takes', async () => {
    // The sidecar ends, and the next second of the clock starts, just before the status contains how the node pressure ended the entry.
    const { statuses } = await lifeOf([post], {
      pods: { sidecars: ['side'] },
      scripts: { app: once(11_006), side: [{ stopMillis: 175 }] },
      deletions: [],
      nodeEnd: { at: 30_805, by: { reason: 'NodePressure', message: 'simulated', graceSeconds: 0 } },
      statusMillis: 200,
    });
    const ends = statuses.flatMap(({ status }) => status.deferContainerStatuses?.[0]?.state?.terminated ?? []);
    expect(ends.length).toBeGreaterThan(1);
    expect(new Set(ends.map(({ finishedAt }) => finishedAt)).size).toBe(1);
  });

  it('the condition Deferred is absent, then False with DeferContainersRunning, then has the result', async () => {
    const { statuses } = await lifeOf([{}]);
    const reasons = statuses.map(
      ({ status }) => status.conditions?.find(({ type }) => type === 'Deferred')?.reason ?? 'absent',
    );
    expect(reasons.filter((reason, i) => reason !== reasons[i - 1])).toEqual([
      'absent',
      'DeferContainersRunning',
      'DeferContainersSucceeded',
    ]);
  });

  it('Events about an entry have the path of the entry, those about the list have none', async () => {
    const result = await lifeOf([{ imagePullPolicy: 'Always' }]);
    const reported = result.events.slice(result.events.findIndex(({ reason }) => reason === 'DeferStarted'));
    expect(reported.map(({ reason, fieldPath }) => `${reason} ${fieldPath ?? 'Pod'}`)).toEqual([
      'DeferStarted Pod',
      'Created spec.deferContainers{defer-1}',
      'Started spec.deferContainers{defer-1}',
      expect.stringMatching(/DeferCompleted Pod|Killing spec.containers{app}/),
      expect.any(String),
    ]);
    expect(eventsOf(result, 'Pulling')).toContain('Pulling spec.deferContainers{defer-1}');
  });
});

it('every kind of Event about an entry has the path of the entry', async () => {
  const spec = { deferContainerGracePeriodExtensionInterval: 5, deferContainerGracePeriodExtensionCount: 1 };
  const entries = [
    { restartPolicy: 'OnFailure', imagePullPolicy: 'Always' },
    { timeoutSeconds: 2 },
    { onReasons: ['Evicted'] },
    { image: 'missing:1' },
    {},
  ];
  const result = await lifeOf(entries, {
    pods: { spec },
    scripts: { 'defer-1': [{ runMillis: 10, exitCode: 1 }, { runMillis: 10 }], 'defer-2': [{}], 'defer-5': [{}] },
    pullable: (reference) => reference !== 'missing:1',
    deletions: [{ at: 10_000, graceSeconds: 10 }],
  });
  const reasons = ['Pulling', 'Pulled', 'Created', 'Started', 'BackOff', 'Killing'];
  const reported = eventsOf(result, ...reasons, 'DeferContainerFailed', 'DeferContainerSkipped', 'ExtendGracePeriod');
  const path = (index: number) => `spec.deferContainers{defer-${index}}`;
  expect(reported).toEqual(
    expect.arrayContaining([
      ...['Pulling', 'Pulled', 'Created', 'Started', 'BackOff'].map((reason) => `${reason} ${path(1)}`),
      ...['Killing', 'DeferContainerFailed'].map((reason) => `${reason} ${path(2)}`),
      `DeferContainerSkipped ${path(3)}`,
      `DeferContainerFailed ${path(4)}`,
      `ExtendGracePeriod ${path(5)}`,
    ]),
  );
  const ofTheList = result.events.filter(({ reason }) => ['DeferStarted', 'DeferCompleted'].includes(reason));
  expect(ofTheList.map(({ fieldPath }) => fieldPath)).toEqual([undefined, undefined]);
});

describe('images', () => {
  const absent = { absentImages: true };
  const pullsOf = ({ actions, start }: LifeResult, image: string) =>
    actions.filter(({ action }) => action.kind === 'pullImage' && action.image === image).map(({ at }) => at - start);

  it('images of entries are pulled once the Pod runs', async () => {
    const result = await lifeOf([{ image: 'tool:1' }], absent);
    const started = result.trace.find(({ what, name }) => what === 'start' && name === 'app')?.at ?? 0;
    expect(pullsOf(result, 'tool:1')).toHaveLength(1);
    expect(pullsOf(result, 'tool:1')[0]).toBeGreaterThanOrEqual(started - result.start);
    expect(pullsOf(result, 'tool:1')[0]).toBeLessThan(9000);
  });

  it('images of entries are pulled only in their turn with prePullDeferImages false', async () => {
    const result = await lifeOf([{ image: 'tool:1' }], { ...absent, pods: { spec: { prePullDeferImages: false } } });
    expect(pullsOf(result, 'tool:1')).toHaveLength(1);
    expect(pullsOf(result, 'tool:1')[0]).toBeGreaterThanOrEqual(10_000);
    expect(deferStates(result)).toEqual(['terminated Completed']);
  });

  it('a pull that failed before the turn is reported, does not affect the Pod, and is retried immediately in the turn', async () => {
    let pullable = false;
    const result = await lifeOf([{ image: 'tool:1' }], {
      pullable: (reference) => reference !== 'tool:1' || pullable,
      edits: [
        {
          at: 9000,
          edit: (pod) => {
            pullable = true;
            return pod;
          },
        },
      ],
      deletions: [{ at: 9100, graceSeconds: 30 }],
    });
    expect(eventsOf(result, 'Failed')).toContain('Failed spec.deferContainers{defer-1}');
    expect(
      result.statuses.some(({ status }) =>
        status.conditions?.some(({ type, status: holds }) => type === 'Ready' && holds === 'True'),
      ),
    ).toBe(true);
    expect(deferStates(result)).toEqual(['terminated Completed']);
    expect(result.goneAt).toBeLessThan(result.start + 10_600);
  });
});

describe('crashes of the agent', () => {
  const defers = [{}, { restartPolicy: 'OnFailure' }, post, post];
  const scripts = { 'defer-2': [{ runMillis: 300, exitCode: 1 }, { runMillis: 300 }], 'defer-4': once(500) };

  it.each([
    ['succeeds', undefined],
    ['fails before the next agent starts', 10],
    ['fails after the next agent has started', 200],
  ])(
    'a crash at any action does not change how the list ends: a start that is under way %s',
    async (_, cutOffStartsMillis) => {
      const whole = await lifeOf(defers, { scripts });
      const outcome = (result: LifeResult) => ({ states: deferStates(result), deferred: deferred(result)?.reason });
      for (let action = 1; action <= whole.actions.length; action++)
        for (const asked of [true, false]) {
          const abandoned = cutOffStartsMillis === undefined ? {} : { cutOffStartsMillis };
          const crashed = await lifeOf(defers, { scripts, crashes: [{ action, asked }], ...abandoned });
          expect(outcome(crashed), `crash at ${action} ${asked}`).toEqual(outcome(whole));
          // The outage after an agent's death counts from its last sign of life, up to 10 s before the death.
          const moved = deadlines(crashed);
          expect(moved.length, `deadlines after a crash at ${action} ${asked}`).toBeLessThanOrEqual(2);
          expect((moved.at(-1) ?? 0) - (moved[0] ?? 0)).toBeLessThanOrEqual(10_100);
        }
    },
  );

  it('the end of an entry is written to the status before its container is removed, even after the deadline', async () => {
    const result = await lifeOf([{}], {
      statusMillis: 200,
      scripts: { 'defer-1': once(1000) },
      deletions: [{ at: 10_000, graceSeconds: 1 }],
    });
    const ends = result.statuses.map(({ status }) => stateOf(status.deferContainerStatuses?.[0]?.state));
    // The entry gets its stop signal at the deadline, and exits on its own before the kill.
    expect(new Set(ends.filter((state) => state.startsWith('terminated')))).toEqual(
      new Set(['terminated DeadlineExceeded']),
    );
    expect(result.goneAt).toBeLessThan(result.start + 13_000);
  });

  it('an attempt is announced in the status before it starts', async () => {
    const result = await lifeOf([{}], { statusMillis: 200 });
    const start = result.trace.find(({ what, name }) => what === 'start' && name === 'defer-1')?.at ?? 0;
    const announced = result.statuses.find(
      ({ status }) => stateOf(status.deferContainerStatuses?.[0]?.state) === 'waiting ContainerCreating',
    );
    expect(announced?.at).toBeLessThan(start);
    expect(announced?.status.deferContainerStatuses?.[0]?.restartCount).toBe(0);
  });
});
