/** Tests the specified behavior of defer containers (entries) in virtual time: when the list of entries runs. */
import { describe, expect, it } from 'vitest';
import {
  deadlines,
  deferred,
  deferStates,
  eventsOf,
  forever,
  lifeOf,
  once,
  phases,
  post,
  steps,
  termination,
} from './defer-life.ts';

describe('when the list runs', () => {
  it('after a delete, PreExit entries run in order, the app stops, then PostExit entries run, within the grace period', async () => {
    const result = await lifeOf([{}, {}, post]);
    expect(steps(result)).toEqual([
      'start app',
      'start defer-1',
      'defer-1 exits 0',
      'start defer-2',
      'defer-2 exits 0',
      'signal app',
      'app exits 143',
      'start defer-3',
      'defer-3 exits 0',
    ]);
    expect(deferStates(result)).toEqual(['terminated Completed', 'terminated Completed', 'terminated Completed']);
    expect(deferred(result)).toMatchObject({ status: 'True', reason: 'DeferContainersSucceeded' });
    expect(termination(result)[0]).toMatchObject({ reason: 'Deleted' });
    expect(result.goneAt).toBeLessThan(result.start + 14_000);
  });

  it.each([
    ['EvictionByEvictionAPI', 'Evicted'],
    ['PreemptionByScheduler', 'Preempted'],
  ])('a deletion by %s runs the list with the reason %s', async (reason, expected) => {
    const condition = { type: 'DisruptionTarget', status: 'True', reason };
    const result = await lifeOf([{}], {
      edits: [
        {
          at: 9000,
          edit: (pod) => ({
            ...pod,
            status: { ...pod.status, conditions: [...(pod.status?.conditions ?? []), condition] },
          }),
        },
      ],
    });
    expect(steps(result, 'defer-1')).toEqual(['start defer-1', 'defer-1 exits 0']);
    expect(termination(result)[0]?.reason).toBe(expected);
  });

  it.each([
    [0, 'Succeeded'],
    [3, 'Failed'],
  ])(
    'after app containers exited on their own with %i, the list runs once, then the phase is %s',
    async (code, phase) => {
      const result = await lifeOf([{}, post], {
        pods: { restartPolicy: 'Never' },
        scripts: { app: once(2000, code), 'defer-1': once(1000, 1) },
        deletions: [{ at: 60_000, graceSeconds: 30 }],
      });
      expect(steps(result)).toEqual([
        'start app',
        `app exits ${code}`,
        'start defer-1',
        'defer-1 exits 1',
        'start defer-2',
        'defer-2 exits 0',
      ]);
      expect(phases(result)).toEqual(['Pending', 'Running', 'Terminating', phase]);
      expect(termination(result)[0]?.reason).toBe('Completed');
      const exit = result.trace.find(({ what }) => what === 'exit')?.at ?? 0;
      expect(deadlines(result)).toEqual([exit - result.start + 30_000]);
    },
  );

  it.each([
    [0, 'Running', 'Succeeded'],
    [1, 'Pending', 'Failed'],
  ])(
    'the phase of a finished Pod is Terminating until the list has ended, not while its sidecar stops (init container exits with %i)',
    async (code, before, after) => {
      const result = await lifeOf([post], {
        pods: { sidecars: ['side'], init: ['init'], restartPolicy: 'Never' },
        scripts: { side: [{ stopMillis: 5000 }], init: once(1000, code), app: once(2000) },
        deletions: [],
      });
      expect(phases(result).slice(-3)).toEqual(['Terminating', before, after]);
      const at = (name: string, what: string) =>
        result.trace.find((each) => each.name === name && each.what === what)?.at;
      const shown = (phase: string) => result.statuses.findLast(({ status }) => status.phase === phase)?.at ?? 0;
      expect(shown('Terminating')).toBeLessThan((at('defer-1', 'exit') ?? 0) + 100);
      const final = result.statuses.find(({ status }) => status.phase === after)?.at;
      expect(final).toBeGreaterThanOrEqual(at('side', 'exit') ?? Number.NaN);
    },
  );

  it('the final phase of a completed Pod that is deleted while its list runs is written before the object is removed', async () => {
    const result = await lifeOf([post], {
      pods: { restartPolicy: 'Never' },
      scripts: { app: once(5000), 'defer-1': once(3000) },
      deletions: [{ at: 6000, graceSeconds: 20 }],
    });
    const written = result.statuses.findLast(({ at }) => at <= (result.removedAt ?? 0));
    expect(written?.status.phase).toBe('Succeeded');
    expect(deferStates(result)).toEqual(['terminated Completed']);
  });

  it('the list of a Pod that completes on its own starts after the last exit of an app container', async () => {
    const result = await lifeOf([{}], {
      pods: { apps: ['app', 'other'], restartPolicy: 'OnFailure' },
      scripts: { app: once(2000), other: once(5000) },
      deletions: [],
    });
    expect(steps(result)).toEqual([
      'start app',
      'start other',
      'app exits 0',
      'other exits 0',
      'start defer-1',
      'defer-1 exits 0',
    ]);
  });

  it('a delete of a Pod that completed on its own does not run the list again', async () => {
    const result = await lifeOf([{}], {
      pods: { restartPolicy: 'Never' },
      scripts: { app: once(1000) },
      deletions: [{ at: 30_000, graceSeconds: 30 }],
    });
    expect(steps(result, 'defer-1')).toEqual(['start defer-1', 'defer-1 exits 0']);
    expect(result.goneAt).toBeDefined();
  });

  it.each([
    [5, 8_000],
    [60, 31_000],
  ])(
    'a delete with %i s while the list of a completed Pod runs moves the deadline only earlier',
    async (graceSeconds, until) => {
      const result = await lifeOf([{}], {
        pods: { restartPolicy: 'Never' },
        scripts: { app: once(1000), 'defer-1': [{}] },
        deletions: [{ at: 3000, graceSeconds }],
      });
      expect(steps(result, 'defer-1')).toEqual(['start defer-1', 'signal defer-1', 'defer-1 exits 137']);
      expect(Math.abs((result.goneAt ?? 0) - result.start - until - 2000)).toBeLessThan(200);
    },
  );

  it('after activeDeadlineSeconds, the list runs within the grace period, which counts from then', async () => {
    const result = await lifeOf([{}, post], {
      pods: { activeDeadlineSeconds: 5, graceSeconds: 20 },
      deletions: [],
      limitMillis: 60_000,
    });
    expect(steps(result, 'defer-1', 'defer-2', 'app')).toEqual([
      'start app',
      'start defer-1',
      'defer-1 exits 0',
      'signal app',
      'app exits 143',
      'start defer-2',
      'defer-2 exits 0',
    ]);
    expect(termination(result)[0]?.reason).toBe('DeadlineExceeded');
    expect(deadlines(result)).toEqual([25_000]);
    expect(result.statuses.at(-1)?.status).toMatchObject({ phase: 'Failed', reason: 'DeadlineExceeded' });
  });

  it.each([
    [100, 30],
    [7, 7],
  ])(
    'under node pressure that grants %i s, the list runs within the shorter of that and the grace period',
    async (graceSeconds, expected) => {
      const result = await lifeOf([{}], {
        nodeEnd: {
          at: 10_000,
          by: { reason: 'NodePressure', message: 'The node was low on resource: memory.', graceSeconds },
        },
        deletions: [],
        scripts: { 'defer-1': once(1000) },
        limitMillis: 60_000,
      });
      expect(deadlines(result)).toEqual([10_000 + expected * 1000]);
      expect(steps(result, 'defer-1')).toEqual(['start defer-1', 'defer-1 exits 0']);
      expect(result.statuses.at(-1)?.status).toMatchObject({
        phase: 'Failed',
        reason: 'Evicted',
        message: 'The node was low on resource: memory.',
      });
    },
  );

  it('under hard node pressure, the list is skipped, which the status and Events show', async () => {
    const by = { reason: 'NodePressure', message: 'The node was low on resource: memory.', graceSeconds: 0 } as const;
    const result = await lifeOf([{}, post], { nodeEnd: { at: 10_000, by }, deletions: [], limitMillis: 60_000 });
    expect(steps(result, 'defer-1', 'defer-2')).toEqual([]);
    expect(deferStates(result)).toEqual(['terminated Skipped', 'terminated Skipped']);
    expect(deferred(result)).toMatchObject({ status: 'False', reason: 'DeferContainersSkipped' });
    expect(result.statuses.at(-1)?.status).toMatchObject({ phase: 'Failed', reason: 'Evicted' });
    expect(eventsOf(result, 'DeferContainerSkipped')).toHaveLength(2);
  });

  it('under hard node pressure, entries that have ended keep their result', async () => {
    const by = { reason: 'NodePressure', message: 'The node was low on resource: memory.', graceSeconds: 0 } as const;
    const result = await lifeOf([{}, {}, {}], {
      scripts: { 'defer-1': once(10), 'defer-2': [{}] },
      nodeEnd: { at: 12_000, by },
    });
    expect(deferStates(result)).toEqual(['terminated Completed', 'terminated Skipped', 'terminated Skipped']);
    const ended = result.statuses.at(-1)?.status.deferContainerStatuses?.map(({ state }) => state?.terminated?.message);
    expect(ended?.slice(1)).toEqual([
      expect.stringContaining('the node had no time'),
      expect.stringContaining('the node had no time'),
    ]);
    expect(result.goneAt).toBeLessThan(result.start + 15_000);
    // The node pressure begins after the entry has ended and before the status that shows the end is written.
    const unwritten = await lifeOf([{}], {
      scripts: { 'defer-1': [{}] },
      deletions: [{ at: 10_000, graceSeconds: 3 }],
      nodeEnd: { at: 15_190, by },
      statusMillis: 200,
    });
    expect(deferStates(unwritten)).toEqual(['terminated DeadlineExceeded']);
  });

  it('at a node shutdown, the list runs within the time that is left for the Pod', async () => {
    const by = {
      reason: 'NodeShutdown',
      message: 'Pod was terminated in response to imminent node shutdown.',
      graceSeconds: 4,
    } as const;
    const result = await lifeOf([{}, {}], {
      nodeEnd: { at: 10_000, by },
      deletions: [],
      scripts: { 'defer-2': [{}] },
      limitMillis: 60_000,
    });
    expect(termination(result)[0]?.reason).toBe('NodeShutdown');
    expect(deadlines(result)).toEqual([14_000]);
    expect(deferStates(result)).toEqual(['terminated Completed', 'terminated DeadlineExceeded']);
  });

  it('after a forced deletion, no entry runs and no Event reports the list', async () => {
    const result = await lifeOf([{}, post], { deletions: [], forcedAt: 10_000 });
    expect(steps(result, 'defer-1', 'defer-2')).toEqual([]);
    expect(eventsOf(result, 'DeferStarted', 'DeferContainerSkipped')).toEqual([]);
    expect(result.goneAt).toBeLessThan(result.start + 10_300);
  });

  it('after a forced deletion whose object a finalizer keeps, no extension makes time for the list', async () => {
    const spec = { deferContainerGracePeriodExtensionInterval: 7, deferContainerGracePeriodExtensionCount: 3 };
    const result = await lifeOf([{}, post], { pods: { spec }, deletions: [{ at: 10_000, graceSeconds: 0 }] });
    expect(steps(result, 'defer-1', 'defer-2')).toEqual([]);
    expect(deferStates(result)).toEqual(['terminated Skipped', 'terminated Skipped']);
    expect(result.goneAt).toBeLessThan(result.start + 12_500);
  });

  it('if no init container had started, the list is skipped and the deletion is immediate', async () => {
    const result = await lifeOf([{}, post], {
      pods: { init: ['init-1'] },
      absentImages: true,
      pullable: () => false,
    });
    expect(steps(result)).toEqual([]);
    expect(phases(result)).not.toContain('Terminating');
    expect(result.goneAt).toBeLessThan(result.start + 10_200);
  });

  it('after a delete during initialization, PreExit entries are skipped and PostExit entries run', async () => {
    const result = await lifeOf([{}, post], { pods: { init: ['init-1'] }, scripts: { 'init-1': forever } });
    expect(steps(result)).toEqual([
      'start init-1',
      'signal init-1',
      'init-1 exits 143',
      'start defer-2',
      'defer-2 exits 0',
    ]);
    expect(deferStates(result)).toEqual(['terminated Skipped', 'terminated Completed']);
    expect(deferred(result)).toMatchObject({ status: 'True', reason: 'DeferContainersSucceeded' });
  });

  it('after a failed initialization, PostExit entries run', async () => {
    const result = await lifeOf([{}, post], {
      pods: { init: ['init-1'], restartPolicy: 'Never' },
      scripts: { 'init-1': once(1000, 1) },
      deletions: [],
      limitMillis: 60_000,
    });
    expect(steps(result, 'defer-1', 'defer-2')).toEqual(['start defer-2', 'defer-2 exits 0']);
    expect(result.statuses.at(-1)?.status.phase).toBe('Failed');
  });

  it('the list does not run when an app container of a running Pod crashes and restarts', async () => {
    const result = await lifeOf([{}], { scripts: { app: once(1000, 1) }, deletions: [], limitMillis: 60_000 });
    expect(steps(result, 'defer-1')).toEqual([]);
    expect(deferStates(result)).toEqual(['waiting PodRunning']);
    expect(deferred(result)).toBeUndefined();
  });

  it('after the sandbox is lost, unfinished PreExit entries end and PostExit entries run in a new sandbox', async () => {
    const result = await lifeOf([{}, {}, post], {
      scripts: { 'defer-2': once(5000) },
      sandboxLostAt: 13_000,
    });
    expect(steps(result, 'defer-1', 'defer-2', 'defer-3')).toEqual([
      'start defer-1',
      'defer-1 exits 0',
      'start defer-2',
      'signal defer-2',
      'defer-2 exits 137',
      'start defer-3',
      'defer-3 exits 0',
    ]);
    expect(result.trace.filter(({ what }) => what === 'sandbox')).toHaveLength(2);
    expect(deferStates(result)).toEqual(['terminated Completed', 'terminated SandboxLost', 'terminated Completed']);
    expect(steps(result, 'app')).toEqual(['start app', 'signal app', 'app exits 143']);
  });

  it('a PreExit entry that ended just before the sandbox is lost has run, even if no status shows that yet', async () => {
    const result = await lifeOf([{}, post], { sandboxLostAt: 11_212, statusMillis: 200 });
    expect(steps(result, 'defer-1')).toEqual(['start defer-1', 'defer-1 exits 0']);
    expect(deferStates(result)).toEqual(['terminated Completed', 'terminated Completed']);
  });

  it('a PostExit entry that ran when the sandbox was lost runs again in the new one', async () => {
    const result = await lifeOf([post], {
      scripts: { 'defer-1': [{ runMillis: 5000 }, { runMillis: 10 }] },
      sandboxLostAt: 12_000,
    });
    expect(steps(result, 'defer-1')).toEqual([
      'start defer-1',
      'signal defer-1',
      'defer-1 exits 137',
      'start defer-1#1',
      'defer-1 exits 0',
    ]);
    expect(deferred(result)?.status).toBe('True');
  });
});
