import { expect, it } from 'vitest';
import { live } from './pod-life.ts';
import { simulatedPod } from './simulated-pod.ts';

const message = 'The node was low on resource: memory. ';

it.each([0, 20])(
  'an evicted Pod frees the disk space of its containers once its status shows their ends (grace period %d s)',
  async (graceSeconds) => {
    const { pod, actions, statuses, trace } = await live({
      pod: simulatedPod({ apps: ['app-1', 'app-2'] }),
      scripts: { 'app-1': [{ stopMillis: 3_000 }], 'app-2': [{ stopMillis: 10 }] },
      nodeEnd: { at: 5_000, by: { reason: 'NodePressure', message, graceSeconds } },
      limitMillis: 60_000,
    });
    expect(pod.status).toMatchObject({ phase: 'Failed', reason: 'Evicted', message });
    const disruption = pod.status?.conditions?.find(({ type }) => type === 'DisruptionTarget');
    expect(disruption).toMatchObject({ status: 'True', reason: 'TerminationByKubelet', message });
    expect(pod.status?.containerStatuses?.map(({ state }) => state?.terminated !== undefined)).toEqual([true, true]);
    const shownAt = statuses.find(({ status }) => status.phase === 'Failed')?.at ?? Number.NaN;
    const removals = actions.filter(({ action }) => action.kind === 'removeContainer');
    expect(removals.length).toBe(2);
    for (const { at } of removals) expect(at).toBeGreaterThanOrEqual(shownAt);
    expect(trace.filter(({ what }) => what === 'start').length).toBe(2);
  },
);

it('a Pod that a shutdown ended keeps its containers and their logs', async () => {
  const { pod, actions } = await live({
    pod: simulatedPod({ apps: ['app-1'] }),
    scripts: { 'app-1': [{ stopMillis: 10 }] },
    nodeEnd: { at: 5_000, by: { reason: 'NodeShutdown', message: 'bye', graceSeconds: 10 } },
    limitMillis: 60_000,
  });
  expect(pod.status).toMatchObject({ phase: 'Failed', reason: 'Terminated', message: 'bye' });
  expect(actions.filter(({ action }) => action.kind === 'removeContainer')).toEqual([]);
});

it('a Pod that is preempted for a critical one has its own grace period, and fails', async () => {
  const preempted = 'Preempted in order to admit critical pod';
  const { pod } = await live({
    pod: simulatedPod({ apps: ['app-1'] }),
    scripts: { 'app-1': [{ stopMillis: 3_000 }] },
    nodeEnd: { at: 5_000, by: { reason: 'Preempted', message: preempted, graceSeconds: 30 } },
    limitMillis: 60_000,
  });
  expect(pod.status).toMatchObject({ phase: 'Failed', reason: 'Preempting', message: preempted });
  const disruption = pod.status?.conditions?.find(({ type }) => type === 'DisruptionTarget');
  expect(disruption).toMatchObject({
    reason: 'TerminationByKubelet',
    message: 'Pod was preempted by Kubelet to accommodate a critical pod.',
  });
  expect(pod.status?.containerStatuses?.[0]?.state?.terminated?.exitCode).toBe(143);
});

it('earlier runs of an evicted Pod are removed as well, and its status keeps the last ones', async () => {
  const { pod, actions } = await live({
    pod: simulatedPod({ apps: ['app-1'] }),
    scripts: { 'app-1': [{ runMillis: 1_000, exitCode: 3 }, { stopMillis: 10 }] },
    nodeEnd: { at: 60_000, by: { reason: 'NodePressure', message, graceSeconds: 0 } },
    limitMillis: 120_000,
  });
  const removals = actions.flatMap(({ action }) => (action.kind === 'removeContainer' ? [action.attempt] : []));
  expect(removals.sort()).toEqual([0, 1]);
  const [status] = pod.status?.containerStatuses ?? [];
  expect(status).toMatchObject({ restartCount: 1, lastState: { terminated: { exitCode: 3 } } });
  expect(status?.state?.terminated?.exitCode).not.toBe(3);
});

it('a Pod that is preempted and then evicted fails because of the preemption, and frees its disk space', async () => {
  const preempted = 'Preempted in order to admit critical pod';
  const { pod, actions } = await live({
    pod: simulatedPod({ apps: ['app-1'] }),
    scripts: { 'app-1': [{ runMillis: 9_000, exitCode: 0 }] },
    nodeEnd: { at: 5_000, by: { reason: 'Preempted', message: preempted, graceSeconds: 30 } },
    nextNodeEnd: { at: 6_000, by: { reason: 'NodePressure', message, graceSeconds: 20 } },
    limitMillis: 60_000,
  });
  expect(pod.status).toMatchObject({ phase: 'Failed', reason: 'Preempting', message: preempted });
  expect(pod.status?.containerStatuses?.[0]?.state?.terminated?.exitCode).toBe(0);
  expect(actions.filter(({ action }) => action.kind === 'removeContainer')).toHaveLength(1);
});

it('a Pod that was terminating before the node ended it keeps its message', async () => {
  const { pod } = await live({
    pod: simulatedPod({ apps: ['app-1'], activeDeadlineSeconds: 5 }),
    scripts: { 'app-1': [{ stopMillis: 3_000 }] },
    nodeEnd: { at: 6_000, by: { reason: 'NodePressure', message, graceSeconds: 0 } },
    limitMillis: 60_000,
  });
  expect(pod.status).toMatchObject({
    reason: 'DeadlineExceeded',
    message: 'Pod was active on the node longer than the specified deadline',
  });
});
