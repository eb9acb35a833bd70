import { describe, expect, test } from 'vitest';
import type { CoreV1Event, Job, JobSpec, Pod } from '../../api/generated/types.ts';
import { EVENTS, JOBS, PODS } from '../../api/resources.ts';
import { formatTime } from '../../machinery/time.ts';
import { backend, controllerOptions, settled, stopControllers, timers, useRegistry } from '../controller-fixture.ts';
import { startJobs } from './job.ts';
import { newJob, setPhase } from './job-fixture.ts';

const MERGE = 'application/merge-patch+json';
const INDEX = 'batch.kubernetes.io/job-completion-index';
const FINALIZER = 'batch.kubernetes.io/job-tracking';

useRegistry();

async function start(spec: Partial<JobSpec> = {}): Promise<void> {
  await startJobs(controllerOptions());
  await backend.create(JOBS, 'a', newJob(spec));
  await settled();
}
const change = async (spec: object): Promise<void> => {
  await backend.patch(JOBS, 'a', 'work', MERGE, { spec });
  await settled();
};
const job = (): Job => backend.objects(JOBS)[0] as Job;
const pods = (): Pod[] => backend.objects(PODS) as Pod[];
const active = (): Pod[] =>
  pods().filter(
    ({ metadata, status }) =>
      metadata.deletionTimestamp === undefined && !['Succeeded', 'Failed'].includes(status?.phase ?? ''),
  );
const indexes = (): string[] =>
  active()
    .map(({ metadata }) => metadata.annotations?.[INDEX] ?? '')
    .sort();
const events = (): string[] =>
  (backend.objects(EVENTS) as CoreV1Event[]).map(({ reason, message = '' }) => `${reason}: ${message}`);
const conditions = (): string[] =>
  (job().status?.conditions ?? []).map(({ type, status, reason }) => `${type}=${status} ${reason}`);
const end = async (phase: string, count = 1, index?: number): Promise<void> => {
  const chosen = active().filter(
    ({ metadata }) => index === undefined || metadata.annotations?.[INDEX] === String(index),
  );
  for (const pod of chosen.slice(0, count)) await setPhase(backend, pod, phase, timers.now());
  await settled();
};
/** Acts as the nodes: ends and removes the Pods that are being deleted. */
const gone = async (): Promise<void> => {
  for (const pod of pods()) {
    if (pod.metadata.deletionTimestamp === undefined) continue;
    await setPhase(backend, pod, 'Failed', timers.now());
    await backend.remove(PODS, 'a', pod.metadata.name);
  }
  await settled();
};
const pass = async (seconds: number): Promise<void> => {
  timers.advance(seconds * 1000);
  await settled();
};

describe('a Job', () => {
  test('runs one Pod and is complete when the Pod has succeeded', async () => {
    await start();
    const [pod] = pods();
    expect(pod?.metadata).toMatchObject({
      generateName: 'work-',
      finalizers: [FINALIZER],
      labels: { 'job-name': 'work', 'batch.kubernetes.io/job-name': 'work' },
      ownerReferences: [{ kind: 'Job', name: 'work', controller: true, blockOwnerDeletion: true }],
    });
    const startTime = formatTime(timers.now());
    expect(job().status).toEqual({ startTime, active: 1, ready: 0, terminating: 0, uncountedTerminatedPods: {} });
    await end('Running');
    expect(job().status).toMatchObject({ active: 1, ready: 1 });
    await pass(7);
    await end('Succeeded');
    const time = { lastProbeTime: formatTime(timers.now()), lastTransitionTime: formatTime(timers.now()) };
    const reached = { reason: 'CompletionsReached', message: 'Reached expected number of succeeded pods' };
    expect(job().status).toEqual({
      startTime,
      completionTime: formatTime(timers.now()),
      succeeded: 1,
      ready: 0,
      terminating: 0,
      uncountedTerminatedPods: {},
      conditions: [
        { type: 'SuccessCriteriaMet', status: 'True', ...reached, ...time },
        { type: 'Complete', status: 'True', ...reached, ...time },
      ],
    });
    expect(pods().map(({ metadata }) => metadata.finalizers)).toEqual([undefined]);
    expect(events()).toEqual([`SuccessfulCreate: Created pod: ${pod?.metadata.name}`, 'Completed: Job completed']);
  });

  test('runs as many Pods in parallel as it may, and never more than are still needed', async () => {
    await start({ completions: 5, parallelism: 3 });
    expect(active()).toHaveLength(3);
    await end('Succeeded', 2);
    expect(active()).toHaveLength(3);
    await end('Succeeded', 2);
    expect(active()).toHaveLength(1);
    expect(job().status).toMatchObject({ active: 1, succeeded: 4 });
    await end('Succeeded');
    expect(job().status).toMatchObject({ succeeded: 5 });
    expect(conditions()).toContain('Complete=True CompletionsReached');
    expect(pods()).toHaveLength(5);
  });

  test('without a number of completions ends when one Pod has succeeded and the others have ended', async () => {
    await start({ parallelism: 3 });
    expect(active()).toHaveLength(3);
    await end('Succeeded');
    expect(active()).toHaveLength(2);
    await end('Failed');
    expect(active()).toHaveLength(1);
    expect(conditions()).toEqual([]);
    await end('Succeeded');
    expect(job().status).toMatchObject({ succeeded: 2, failed: 1 });
    expect(conditions()).toContain('Complete=True CompletionsReached');
  });

  test('tries again 10 s after a failure, then 20 s, and fails once there are more failures than it allows', async () => {
    await start({ backoffLimit: 2 });
    await end('Failed');
    await pass(9);
    expect([active().length, job().status?.failed]).toEqual([0, 1]);
    await pass(1);
    expect(active()).toHaveLength(1);
    await end('Failed');
    await pass(19);
    expect(active()).toHaveLength(0);
    await pass(1);
    await end('Failed');
    expect(job().status).toMatchObject({ failed: 3, terminating: 0 });
    expect(job().status).not.toHaveProperty('active');
    expect(conditions()).toEqual(['FailureTarget=True BackoffLimitExceeded', 'Failed=True BackoffLimitExceeded']);
    expect(events().at(-1)).toBe('BackoffLimitExceeded: Job has reached the specified backoff limit');
    await pass(3600);
    expect(pods()).toHaveLength(3);
  });

  test('keeps its back-off in a new engine', async () => {
    await start();
    await end('Failed');
    stopControllers();
    await startJobs(controllerOptions());
    await settled();
    expect(active()).toHaveLength(0);
    await pass(10);
    expect(active()).toHaveLength(1);
  });

  test('that is active for too long deletes its Pods, and fails once they have ended', async () => {
    await start({ activeDeadlineSeconds: 60, parallelism: 2, completions: 2 });
    await end('Running', 2);
    await pass(59);
    expect(active()).toHaveLength(2);
    await pass(1);
    expect(active()).toHaveLength(0);
    expect(conditions()).toEqual(['FailureTarget=True DeadlineExceeded']);
    expect(job().status).toMatchObject({ failed: 2, terminating: 2, ready: 0 });
    await gone();
    expect(conditions()).toContain('Failed=True DeadlineExceeded');
    expect(job().status).toMatchObject({ failed: 2, terminating: 0 });
    expect(events()).toContain('DeadlineExceeded: Job was active longer than specified deadline');
  });

  test('that is suspended deletes its Pods without counting them, and starts again when it is resumed', async () => {
    await start({ activeDeadlineSeconds: 60, completions: 2, parallelism: 2 });
    await end('Running', 2);
    await pass(50);
    await change({ suspend: true });
    expect(conditions()).toEqual(['Suspended=True JobSuspended']);
    expect(job().status).toMatchObject({ terminating: 2, ready: 0 });
    await gone();
    expect(pods()).toEqual([]);
    expect(job().status?.failed).toBeUndefined();
    await pass(100);
    await change({ suspend: false });
    expect(conditions()).toEqual(['Suspended=False JobResumed']);
    expect(active()).toHaveLength(2);
    expect(job().status?.startTime).toBe(formatTime(timers.now()));
    expect(events().filter((text) => text.startsWith('Suspended') || text.startsWith('Resumed'))).toEqual([
      'Suspended: Job suspended',
      'Resumed: Job resumed',
    ]);
    await pass(60);
    expect(conditions()).toContain('FailureTarget=True DeadlineExceeded');
  });

  test('that is created suspended has no Pods and no start until it is resumed', async () => {
    await start({ suspend: true });
    expect([pods(), job().status?.startTime, conditions()]).toEqual([[], undefined, ['Suspended=True JobSuspended']]);
    await change({ suspend: false });
    expect(active()).toHaveLength(1);
    expect(job().status?.startTime).toBe(formatTime(timers.now()));
  });

  test('that allows fewer Pods in parallel deletes some, which do not count as failed', async () => {
    await start({ completions: 4, parallelism: 3 });
    await change({ parallelism: 1 });
    await gone();
    expect(active()).toHaveLength(1);
    expect(job().status).toMatchObject({ active: 1, terminating: 0 });
    expect(job().status?.failed).toBeUndefined();
    expect(events().filter((text) => text.startsWith('SuccessfulDelete: Deleted pod: work-'))).toHaveLength(2);
  });

  test('that another controller manages is ignored', async () => {
    await start({ managedBy: 'example.com/other' });
    expect([pods(), job().status]).toEqual([[], {}]);
  });

  test('replaces a Pod that a user deletes at once, and counts it as failed', async () => {
    await start();
    await end('Running');
    await backend.delete(PODS, 'a', pods()[0]?.metadata.name ?? '', {});
    await settled();
    expect(job().status).toMatchObject({ failed: 1, terminating: 1 });
    await pass(10);
    expect(active()).toHaveLength(1);
  });

  test('with the podReplacementPolicy Failed replaces a Pod once it has ended', async () => {
    await start({ podReplacementPolicy: 'Failed' });
    await end('Running');
    await backend.delete(PODS, 'a', pods()[0]?.metadata.name ?? '', {});
    await pass(20);
    expect([active().length, job().status?.terminating, job().status?.failed]).toEqual([0, 1, undefined]);
    await gone();
    expect(job().status).toMatchObject({ failed: 1, terminating: 0 });
    await pass(10);
    expect(active()).toHaveLength(1);
  });

  test('adopts a Pod that matches its selector, and counts it', async () => {
    const template = { metadata: { labels: { app: 'x' } }, spec: newJob().spec?.template?.spec };
    const spec = { selector: { matchLabels: { app: 'x' } }, manualSelector: true, template } as unknown as JobSpec;
    const orphan = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'mine', namespace: 'a', labels: { app: 'x' } } };
    await backend.set(PODS, { ...orphan, spec: newJob().spec?.template?.spec } as Pod);
    await start(spec);
    expect(pods().map(({ metadata }) => [metadata.name, metadata.finalizers])).toEqual([['mine', [FINALIZER]]]);
    await end('Succeeded');
    expect(conditions()).toContain('Complete=True CompletionsReached');
  });

  test('leaves no finalizer in its Pods when it is deleted', async () => {
    await start({ parallelism: 2, completions: 2 });
    await end('Running', 2);
    await backend.remove(JOBS, 'a', 'work');
    await settled();
    expect(pods().flatMap(({ metadata }) => metadata.finalizers ?? [])).toEqual([]);
  });

  test('counts its Pods and creates none while the engine ends all Pods, and creates them when that is withdrawn', async () => {
    let isActive = false;
    let resume = (): void => undefined;
    const onEnd = (act: () => void): void => {
      resume = act;
    };
    await startJobs({ ...controllerOptions(), noMorePods: { isActive: () => isActive, onEnd } });
    await backend.create(JOBS, 'a', newJob({ completions: 2, parallelism: 2 }));
    await settled();
    await end('Running', 2);
    isActive = true;
    await end('Succeeded');
    await backend.delete(PODS, 'a', active()[0]?.metadata.name ?? '', {});
    await pass(100);
    expect(job().status).toMatchObject({ succeeded: 1, failed: 1, terminating: 1 });
    await gone();
    expect(pods().flatMap(({ metadata }) => metadata.finalizers ?? [])).toEqual([]);
    expect(active()).toEqual([]);
    isActive = false;
    resume();
    await settled();
    expect(active()).toHaveLength(1);
  });

  test('counts its Pods although it may create no new ones, and tries to create them again', async () => {
    await start({ parallelism: 1, completions: 2 });
    await end('Running');
    backend.failNext('create pods', new Error('exceeded quota'));
    await end('Succeeded');
    expect(job().status).toMatchObject({ succeeded: 1 });
    expect(events()).toContain('FailedCreate: Error creating: exceeded quota');
    await pass(1);
    expect(active()).toHaveLength(1);
  });
});

const deferring = (): object => {
  const spec = newJob().spec?.template?.spec;
  return { template: { spec: { ...spec, deferContainers: [{ name: 'bye', image: 'x' }] } } };
};
const deletionReasons = (): (string | undefined)[] =>
  pods()
    .filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
    .map(({ status }) => status?.conditions?.find(({ type }) => type === 'DeletionReason')?.reason);

describe('a Job whose Pods have defer containers', () => {
  test.each<[string, Partial<JobSpec>, () => Promise<void>, string]>([
    ['ScaledDown when it allows fewer in parallel', {}, () => change({ parallelism: 0 }), 'ScaledDown'],
    ['ScaledDown when it is suspended', {}, () => change({ suspend: true }), 'ScaledDown'],
    [
      'DeadlineExceeded when it is active for too long',
      { activeDeadlineSeconds: 5 },
      () => pass(5),
      'DeadlineExceeded',
    ],
    ['Completed when it has failed', { backoffLimit: 0 }, () => end('Failed'), 'Completed'],
    [
      'Completed when it has succeeded',
      { completionMode: 'Indexed', successPolicy: { rules: [{ succeededCount: 1 }] } },
      () => end('Succeeded'),
      'Completed',
    ],
  ])('deletes them with the reason %s', async (_, spec, act, reason) => {
    await start({ completions: 2, parallelism: 2, ...deferring(), ...spec });
    await end('Running', 2);
    await act();
    expect(new Set(deletionReasons())).toEqual(new Set([reason]));
  });

  test('counts a Pod only after its list, and does not end before', async () => {
    await start({ ...deferring(), backoffLimit: 0 });
    await end('Running');
    await end('Terminating');
    expect(job().status).toMatchObject({ active: 1, terminating: 0 });
    await backend.delete(PODS, 'a', pods()[0]?.metadata.name ?? '', {});
    await settled();
    expect(job().status).toMatchObject({ terminating: 1 });
    expect(job().status?.failed).toBeUndefined();
    expect(conditions()).toEqual([]);
    await gone();
    expect(job().status).toMatchObject({ failed: 1, terminating: 0 });
    expect(conditions()).toContain('Failed=True BackoffLimitExceeded');
  });

  test.each<[string, object, object]>([
    ['it is suspended', { suspend: true }, { suspend: false }],
    ['it allows fewer in parallel', { parallelism: 0 }, { parallelism: 1 }],
  ])('counts a Pod whose containers had completed when %s, and does not repeat its work', async (_, less, more) => {
    await start(deferring());
    await end('Running');
    await end('Terminating');
    await change(less);
    expect(deletionReasons()).toEqual(['ScaledDown']);
    await change(more);
    await pass(60);
    expect(pods()).toHaveLength(1);
    const [pod] = pods();
    await setPhase(backend, pod as Pod, 'Succeeded', timers.now());
    await settled();
    expect(job().status).toMatchObject({ succeeded: 1 });
    expect(conditions()).toContain('Complete=True CompletionsReached');
    expect(pods().flatMap(({ metadata }) => metadata.finalizers ?? [])).toEqual([]);
  });

  test('counts a Pod that an entry with failurePolicy FailPod has failed, and tries again', async () => {
    await start(deferring());
    await end('Running');
    await end('Terminating');
    const [pod] = pods();
    await setPhase(backend, pod as Pod, 'Failed', timers.now(), 0);
    await settled();
    expect(job().status).toMatchObject({ failed: 1 });
    await pass(10);
    await end('Succeeded');
    expect(job().status).toMatchObject({ failed: 1, succeeded: 1 });
    expect(conditions()).toContain('Complete=True CompletionsReached');
  });

  test('gives its Pods the field if its template has the annotation', async () => {
    const entries = JSON.stringify([{ name: 'bye', image: 'x' }]);
    const annotations = { 'pod.alpha.kubernetes.io/defer-containers': entries };
    const template = { metadata: { annotations }, spec: newJob().spec?.template?.spec };
    await start({ template } as unknown as JobSpec);
    expect(pods()[0]?.spec?.deferContainers).toMatchObject([{ name: 'bye', image: 'x' }]);
  });
});

describe('an indexed Job', () => {
  test('gives each Pod its index, and completes each index once', async () => {
    await start({ completions: 4, parallelism: 2, completionMode: 'Indexed' });
    expect(indexes()).toEqual(['0', '1']);
    const pod = pods()[0];
    expect(pod?.metadata).toMatchObject({ generateName: 'work-0-', labels: { [INDEX]: '0' } });
    expect(pod?.metadata.name).toMatch(/^work-0-.{5}$/);
    expect(pod?.spec).toMatchObject({
      hostname: 'work-0',
      containers: [
        {
          env: [
            {
              name: 'JOB_COMPLETION_INDEX',
              valueFrom: { fieldRef: { fieldPath: `metadata.labels['${INDEX}']` } },
            },
          ],
        },
      ],
    });
    await end('Succeeded', 1, 1);
    expect(indexes()).toEqual(['0', '2']);
    expect(job().status).toMatchObject({ succeeded: 1, completedIndexes: '1' });
    await end('Failed', 1, 0);
    await pass(10);
    expect(indexes()).toEqual(['0', '2']);
    await end('Succeeded', 2);
    await end('Succeeded', 1);
    expect(job().status).toMatchObject({ succeeded: 4, failed: 1, completedIndexes: '0-3' });
    expect(conditions()).toContain('Complete=True CompletionsReached');
  });

  test('with a limit of failures per index fails only that index, and then the Job', async () => {
    await start({ completions: 2, parallelism: 2, completionMode: 'Indexed', backoffLimitPerIndex: 1 });
    await end('Failed', 1, 0);
    expect(job().status).toMatchObject({ failedIndexes: '' });
    await pass(10);
    const retried = active().find(({ metadata }) => metadata.annotations?.[INDEX] === '0');
    expect(retried?.metadata.annotations?.['batch.kubernetes.io/job-index-failure-count']).toBe('1');
    await end('Failed', 1, 0);
    expect(job().status).toMatchObject({ failedIndexes: '0', failed: 2 });
    expect(indexes()).toEqual(['1']);
    await end('Succeeded', 1, 1);
    expect(conditions()).toEqual(['FailureTarget=True FailedIndexes', 'Failed=True FailedIndexes']);
    expect(job().status).toMatchObject({ completedIndexes: '1', failedIndexes: '0', succeeded: 1, failed: 2 });
  });

  test('ends early when its success policy is met', async () => {
    const successPolicy = { rules: [{ succeededIndexes: '0,2', succeededCount: 1 }] };
    await start({ completions: 3, parallelism: 3, completionMode: 'Indexed', successPolicy });
    await end('Running', 3);
    await end('Succeeded', 1, 1);
    expect(conditions()).toEqual([]);
    await end('Succeeded', 1, 2);
    expect(conditions()).toEqual(['SuccessCriteriaMet=True SuccessPolicy']);
    await gone();
    expect(conditions()).toContain('Complete=True SuccessPolicy');
    expect(job().status?.conditions?.[1]?.message).toBe('Matched rules at index 0');
    expect(job().status).toMatchObject({ succeeded: 2, completedIndexes: '1,2' });
    expect(job().status?.failed).toBeUndefined();
  });
});
