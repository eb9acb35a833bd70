import { describe, expect, test } from 'vitest';
import type { Job, JobSpec, JobStatus, Pod, PodFailurePolicyRule } from '../../api/generated/types.ts';
import type { BackOff } from './back-off.ts';
import { ago, jobPod, NOW, storedJob } from './job-fixture.ts';
import { type Decision, reconcile } from './reconcile.ts';

const decide = (job: Job, pods: readonly Pod[], backOff: BackOff = { failures: 0, lastFailure: 0 }): Decision =>
  reconcile({ job, pods, backOff, mayCreate: true, now: NOW });
const names = (pods: readonly Pod[]): string => pods.map(({ metadata }) => metadata.name).join(' ');
const indexes = ({ create }: Decision): string => create.map(({ index }) => index).join(' ');
const trueConditions = ({ status }: Decision): string[] =>
  (status.conditions ?? []).filter(({ status }) => status === 'True').map(({ type, reason }) => `${type} ${reason}`);
const run = (count: number, begin = 'p'): Pod[] => Array.from({ length: count }, (_, i) => jobPod(`${begin}${i}`));
const indexed = (completions: number, spec: Partial<JobSpec> = {}): Partial<JobSpec> => ({
  completions,
  parallelism: completions,
  completionMode: 'Indexed',
  ...spec,
});

describe('the number of Pods of a Job', () => {
  test.each<[string, Partial<JobSpec>, JobStatus, Pod[], number, number]>([
    ['as many as it may run in parallel', { completions: 9, parallelism: 3 }, {}, [], 3, 0],
    ['no more than are still needed', { completions: 9, parallelism: 3 }, { succeeded: 7 }, [], 2, 0],
    ['none while enough are active', { completions: 9, parallelism: 3 }, {}, run(3), 0, 0],
    ['at most 500 at a time', { completions: 900, parallelism: 900 }, {}, [], 500, 0],
    ['none if it is suspended', { completions: 9, suspend: true }, {}, run(2), 0, 2],
    ['fewer if it may run fewer', { completions: 9, parallelism: 1 }, {}, run(3), 0, 2],
    ['none with a parallelism of 0', { completions: 9, parallelism: 0 }, {}, run(1), 0, 1],
    ['all in parallel without completions', { parallelism: 3 }, {}, run(1), 2, 0],
    ['no further ones after a success without completions', { parallelism: 3 }, { succeeded: 1 }, run(1), 0, 0],
    ['another one for a Pod that is being deleted', { completions: 1 }, {}, [jobPod('p', { deleted: true })], 1, 0],
    [
      'none for a Pod that is being deleted if only ended ones are replaced',
      { completions: 1, podReplacementPolicy: 'Failed' },
      {},
      [jobPod('p', { deleted: true })],
      0,
      0,
    ],
    ['none for a Pod in its defer containers', { completions: 1 }, {}, [jobPod('p', { phase: 'Terminating' })], 0, 0],
  ])('%s', (_, spec, status, pods, created, removed) => {
    const decision = decide(storedJob(spec, status), pods);
    expect([decision.create.length, decision.remove.length]).toEqual([created, removed]);
  });

  test('Pods that have not started are deleted first', () => {
    const pods = [
      jobPod('ready', { ready: true }),
      jobPod('pending', { phase: 'Pending', node: '' }),
      jobPod('running'),
    ];
    expect(names(decide(storedJob({ completions: 9, parallelism: 1 }), pods).remove)).toBe('pending running');
  });

  test('an indexed Job gets the first indexes that are neither completed, failed nor active', () => {
    const spec = indexed(8, { parallelism: 5, backoffLimitPerIndex: 1 });
    const status = { completedIndexes: '0,3', failedIndexes: '4' };
    expect(indexes(decide(storedJob(spec, status), [jobPod('p', { index: 2 })]))).toBe('1 5 6 7');
  });

  test('an indexed Job deletes Pods without an index, with one that is too large, and all but one of the same index', () => {
    const pods = [
      jobPod('none'),
      jobPod('large', { index: 3 }),
      jobPod('old', { index: 1, ready: true }),
      jobPod('new', { index: 1 }),
    ];
    const decision = decide(storedJob(indexed(3)), pods);
    expect([names(decision.remove), decision.create, decision.reason]).toEqual(['none large new', [], 'ScaledDown']);
  });
});

describe('the back-off of a Job', () => {
  test.each([
    [1, 10],
    [2, 20],
    [3, 40],
    [6, 320],
    [7, 360],
    [30, 360],
  ])('after %i failures it creates no Pod for %i s', (failures, seconds) => {
    const job = storedJob({ completions: 2, backoffLimit: 100 });
    const before = decide(job, [], { failures, lastFailure: NOW - seconds * 1000 + 1 });
    expect([before.create.length, before.checkAt]).toEqual([0, NOW + 1]);
    expect(decide(job, [], { failures, lastFailure: NOW - seconds * 1000 }).create).toHaveLength(1);
  });

  test('a success ends it', () => {
    const pods = [
      jobPod('failed', { phase: 'Failed', endedSecondsAgo: 9 }),
      jobPod('succeeded', { phase: 'Succeeded', endedSecondsAgo: 5 }),
    ];
    const decision = decide(storedJob({ completions: 3 }), pods, { failures: 4, lastFailure: NOW - 10_000 });
    expect([decision.backOff, decision.create.length]).toEqual([{ failures: 0, lastFailure: 0 }, 1]);
  });

  test('a failure after a success counts again', () => {
    const pods = [
      jobPod('failed', { phase: 'Failed', endedSecondsAgo: 3 }),
      jobPod('succeeded', { phase: 'Succeeded', endedSecondsAgo: 5 }),
    ];
    const decision = decide(storedJob({ completions: 3 }), pods, { failures: 4, lastFailure: NOW - 10_000 });
    expect(decision.backOff).toEqual({ failures: 1, lastFailure: NOW - 3000 });
  });

  test('an index waits for its own failures only', () => {
    const pods = [
      jobPod('first', { phase: 'Failed', index: 0, failures: 1, endedSecondsAgo: 19 }),
      jobPod('second', { phase: 'Failed', index: 1, failures: 0, endedSecondsAgo: 11 }),
    ];
    const job = storedJob(indexed(2, { backoffLimitPerIndex: 5 }));
    const decision = decide(job, pods);
    expect(decision.create).toEqual([{ index: 1, failures: { counted: 1, ignored: 0 } }]);
    // The failure count continues only in replacements, so the failed Pods remain until the replacements exist.
    expect([names(decision.untrack), decision.checkAt]).toEqual(['', NOW + 1000]);
    const replaced = decide(job, [...pods, jobPod('third', { index: 1, failures: 1 })]);
    expect([names(replaced.untrack), replaced.status.uncountedTerminatedPods]).toEqual([
      'second',
      { failed: ['second'] },
    ]);
  });
});

describe('the Pods that a Job counts', () => {
  test('their UIDs are written before their finalizers are removed', () => {
    const pods = [jobPod('good', { phase: 'Succeeded' }), jobPod('bad', { phase: 'Failed' }), jobPod('active')];
    const { status, untrack } = decide(storedJob({ completions: 5, parallelism: 5 }), pods);
    expect(status).toMatchObject({ uncountedTerminatedPods: { succeeded: ['good'], failed: ['bad'] } });
    expect([status.succeeded, status.failed, names(untrack)]).toEqual([0, 0, 'good bad']);
  });

  test('they are counted once their finalizers are removed or they no longer exist', () => {
    const pods = [jobPod('good', { phase: 'Succeeded', tracked: false }), jobPod('bad', { phase: 'Failed' })];
    const waiting = { succeeded: ['good', 'gone'], failed: ['bad'] };
    const job = storedJob(
      { completions: 5, parallelism: 5 },
      { succeeded: 1, failed: 1, uncountedTerminatedPods: waiting },
    );
    const { status, untrack } = decide(job, pods);
    expect(status).toMatchObject({ succeeded: 3, failed: 1, uncountedTerminatedPods: { failed: ['bad'] } });
    expect(names(untrack)).toBe('bad');
  });

  test('a Pod that was counted as failed and succeeds before it loses its finalizer is not counted again', () => {
    const pod = jobPod('late', { phase: 'Succeeded', deleted: true, index: 0 });
    const job = storedJob(indexed(2), { uncountedTerminatedPods: { failed: ['late'] } });
    const { status, untrack } = decide(job, [pod]);
    expect(status).toMatchObject({ succeeded: 0, uncountedTerminatedPods: { failed: ['late'] }, completedIndexes: '' });
    expect(names(untrack)).toBe('late');
  });

  test('a Pod that runs its defer containers is counted later if a suspended Job deletes it and so succeeds', () => {
    const pod = jobPod('ending', { phase: 'Terminating', defers: true });
    const end = { reason: 'Completed', startedAt: ago(1), deadline: ago(-29) };
    const ending = { ...pod, status: { ...pod.status, termination: end } };
    const job = storedJob({ parallelism: 2, completions: undefined, suspend: true });
    const decision = decide(job, [ending, jobPod('done', { phase: 'Succeeded' })]);
    expect(trueConditions(decision)).toEqual(['SuccessCriteriaMet CompletionsReached']);
    expect([names(decision.remove), decision.reason, names(decision.untrack)]).toEqual([
      'ending',
      'ScaledDown',
      'done',
    ]);
  });

  test('at most 500 at a time, those of the status first', () => {
    const pods = Array.from({ length: 600 }, (_, i) => jobPod(`p${i}`, { phase: 'Succeeded' }));
    const job = storedJob({ completions: 900, parallelism: 1 }, { uncountedTerminatedPods: { succeeded: ['p599'] } });
    const { status, untrack } = decide(job, pods);
    expect([untrack.length, untrack[0]?.metadata.name]).toEqual([500, 'p599']);
    expect(status.uncountedTerminatedPods?.succeeded).toHaveLength(500);
  });

  test('a Pod with defer containers that is being deleted counts once its phase is final', () => {
    const job = storedJob({ completions: 2, parallelism: 2 });
    const running = decide(job, [jobPod('p', { deleted: true, defers: true })]);
    expect([names(running.untrack), running.status.uncountedTerminatedPods]).toEqual(['', {}]);
    const ended = decide(job, [jobPod('p', { deleted: true, defers: true, phase: 'Failed' })]);
    expect([names(ended.untrack), ended.status.uncountedTerminatedPods]).toEqual(['p', { failed: ['p'] }]);
  });

  test('a Pod that is deleted and runs its defer containers probably fails, so that its replacement backs off', () => {
    const pods = [jobPod('p', { deleted: true, deletedSecondsAgo: 9, defers: true })];
    const job = storedJob();
    expect([decide(job, pods).create, decide(job, pods).checkAt]).toEqual([[], NOW + 1000]);
    expect(decide(job, [jobPod('p', { deleted: true, defers: true })]).create).toHaveLength(1);
    expect(decide(storedJob({ backoffLimit: 0 }), [jobPod('p', { deleted: true, defers: true })]).create).toEqual([]);
  });

  test('with a limit per index, a Pod that runs its defer containers is replaced once its failure is counted', () => {
    const job = storedJob(indexed(2, { backoffLimitPerIndex: 1 }));
    expect(indexes(decide(job, [jobPod('p', { index: 0, deleted: true, defers: true })]))).toBe('1');
  });

  test('a Pod that completed and runs its defer containers is active', () => {
    const { status, untrack } = decide(storedJob(), [jobPod('p', { phase: 'Terminating', defers: true })]);
    expect([status.active, names(untrack)]).toEqual([1, '']);
  });

  test('an active Pod that lost its finalizer before a crash gets it again', () => {
    expect(names(decide(storedJob(), [jobPod('p', { tracked: false })]).retrack)).toBe('p');
    expect(decide(storedJob({ suspend: true }), [jobPod('p', { tracked: false })]).retrack).toEqual([]);
  });

  test('all lose their finalizers if the Job is being deleted, and none is created', () => {
    const metadata = { deletionTimestamp: ago(1), finalizers: ['foregroundDeletion'] };
    const pods = [jobPod('p'), jobPod('q', { phase: 'Failed' })];
    const decision = decide(storedJob({ completions: 5, parallelism: 5 }, {}, metadata), pods);
    expect([decision.create, decision.remove, names(decision.untrack)]).toEqual([[], [], 'p q']);
  });
});

const exits = (action: string, operator: string, values: number[], containerName?: string): PodFailurePolicyRule => ({
  action,
  onExitCodes: { operator, values, ...(containerName === undefined ? {} : { containerName }) },
});
const DISRUPTED: PodFailurePolicyRule = {
  action: 'Ignore',
  onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }],
};
const bad = (exitCode: number, conditions: Pod['status'] & object = {}): Pod =>
  jobPod('p', { phase: 'Failed', exitCode, index: 0, failures: 0, ...conditions });
const disrupted = { conditions: [{ type: 'DisruptionTarget', status: 'True' as const }] };

describe('the podFailurePolicy', () => {
  const FAILED = 'Container app for pod a/p failed with exit code 42 matching FailJob rule at index 0';
  test.each<[string, PodFailurePolicyRule[], Pod, string | undefined, number]>([
    ['FailJob on an exit code', [exits('FailJob', 'In', [42])], bad(42), FAILED, 1],
    ['FailJob on another exit code', [exits('FailJob', 'In', [42])], bad(1), undefined, 1],
    ['FailJob on an exit code of another container', [exits('FailJob', 'In', [42], 'other')], bad(42), undefined, 1],
    ['NotIn', [exits('FailJob', 'NotIn', [1])], bad(42), FAILED, 1],
    ['NotIn of the exit code', [exits('FailJob', 'NotIn', [42])], bad(42), undefined, 1],
    ['Ignore on a condition', [DISRUPTED], bad(1, disrupted as object), undefined, 0],
    [
      'the first rule that matches',
      [DISRUPTED, exits('FailJob', 'In', [42])],
      bad(42, disrupted as object),
      undefined,
      0,
    ],
    ['Count before FailJob', [exits('Count', 'In', [42]), exits('FailJob', 'In', [42])], bad(42), undefined, 1],
    [
      'FailJob on a condition',
      [{ ...DISRUPTED, action: 'FailJob' }],
      bad(1, disrupted as object),
      'Pod a/p has condition DisruptionTarget matching FailJob rule at index 0',
      1,
    ],
  ])('%s', (_, rules, pod, message, counted) => {
    const { status } = decide(storedJob({ podFailurePolicy: { rules }, completions: 2 }), [pod]);
    const condition = status.conditions?.find(({ type }) => type === 'FailureTarget');
    expect([condition?.reason, condition?.message]).toEqual([message && 'PodFailurePolicy', message]);
    expect(status.uncountedTerminatedPods?.failed ?? []).toHaveLength(counted);
  });

  test('FailIndex fails the index although it may fail again', () => {
    const rules = [exits('FailIndex', 'In', [42])];
    const job = storedJob(indexed(2, { backoffLimitPerIndex: 5, podFailurePolicy: { rules } }));
    const decision = decide(job, [bad(42)]);
    expect([decision.status.failedIndexes, indexes(decision)]).toEqual(['0', '1']);
  });

  test('an ignored failure does not count towards the limit of its index', () => {
    const job = storedJob(indexed(1, { backoffLimitPerIndex: 0, podFailurePolicy: { rules: [DISRUPTED] } }));
    const pod = jobPod('p', { phase: 'Failed', index: 0, endedSecondsAgo: 60, ...disrupted });
    expect(decide(job, [pod]).create).toEqual([{ index: 0, failures: { counted: 0, ignored: 1 } }]);
  });
});

describe('the end of a Job', () => {
  const rule = (succeededIndexes?: string, succeededCount?: number): Partial<JobSpec> => ({
    successPolicy: {
      rules: [
        { succeededIndexes: '7' },
        {
          ...(succeededIndexes === undefined ? {} : { succeededIndexes }),
          ...(succeededCount === undefined ? {} : { succeededCount }),
        },
      ],
    },
  });
  const MET = ['SuccessCriteriaMet SuccessPolicy'];
  test.each<[string, Partial<JobSpec>, string, string[]]>([
    ['all indexes of a rule', rule('0,2-3'), '0,2-4', MET],
    ['not all indexes of a rule', rule('0,2-3'), '0,2', []],
    ['enough indexes of a rule', rule('0,2-3', 2), '0,2', MET],
    ['too few indexes of a rule', rule('0,2-3', 2), '0,1,4', []],
    ['enough indexes', rule(undefined, 3), '0,1,4', MET],
    ['too few indexes', rule(undefined, 3), '0,1', []],
  ])('a success policy with %s', (_, spec, completedIndexes, expected) => {
    const job = storedJob(indexed(8, { ...spec, parallelism: 1 }), { completedIndexes });
    const decision = decide(job, [jobPod('p', { index: 5 })]);
    expect(trueConditions(decision)).toEqual(expected);
    expect([names(decision.remove), decision.reason]).toEqual(
      expected.length > 0 ? ['p', 'Completed'] : ['', 'ScaledDown'],
    );
  });

  test.each<[string, Partial<JobSpec>, JobStatus, Pod[], string, string]>([
    ['more failures than allowed', { backoffLimit: 2 }, { failed: 3 }, run(1), 'BackoffLimitExceeded', 'Completed'],
    [
      'more restarts than allowed',
      { template: { spec: { containers: [], restartPolicy: 'OnFailure' } }, backoffLimit: 2 },
      {},
      [jobPod('p', { restarts: 2 })],
      'BackoffLimitExceeded',
      'Completed',
    ],
    ['its deadline', { activeDeadlineSeconds: 60 }, {}, run(1), 'DeadlineExceeded', 'DeadlineExceeded'],
    [
      'more failed indexes than allowed',
      indexed(5, { backoffLimitPerIndex: 1, maxFailedIndexes: 1 }),
      { failedIndexes: '0,3' },
      [jobPod('p', { index: 1 })],
      'MaxFailedIndexesExceeded',
      'Completed',
    ],
  ])('after %s the active Pods are deleted, and count as failed', (_, spec, status, pods, reason, deletionReason) => {
    const decision = decide(storedJob(spec, status), pods);
    expect(trueConditions(decision)).toEqual([`FailureTarget ${reason}`]);
    expect([names(decision.remove), decision.reason]).toEqual([names(pods), deletionReason]);
    expect([names(decision.untrack), decision.status.active]).toEqual([names(pods), 0]);
    expect(decision.events).toEqual([]);
  });

  test('a Pod in its defer containers counts after them, and only then the Job has failed', () => {
    const spec = { activeDeadlineSeconds: 60 };
    const first = decide(storedJob(spec), [jobPod('p', { defers: true })]);
    expect([names(first.remove), names(first.untrack), first.status.terminating]).toEqual(['p', '', 1]);
    const second = decide(storedJob(spec, first.status), [jobPod('p', { defers: true, deleted: true })]);
    expect([names(second.untrack), trueConditions(second)]).toEqual(['', ['FailureTarget DeadlineExceeded']]);
    // The Pod counts as failed although its container exits with 0 after the stop signal.
    const marked = { type: 'DeletionReason', status: 'True' as const, reason: 'DeadlineExceeded' };
    const ended = jobPod('p', { defers: true, deleted: true, phase: 'Succeeded', conditions: [marked] });
    const third = decide(storedJob(spec, second.status), [ended]);
    expect([names(third.untrack), third.status.uncountedTerminatedPods]).toEqual(['p', { failed: ['p'] }]);
    const last = decide(storedJob(spec, third.status), []);
    expect([last.status.failed, trueConditions(last)[1]]).toEqual([1, 'Failed DeadlineExceeded']);
  });

  test('a Job that succeeds counts the Pods that a user has deleted, but not those that it deletes itself', () => {
    const met = { type: 'SuccessCriteriaMet', status: 'True', reason: 'SuccessPolicy', message: 'x' };
    const job = storedJob(indexed(5), { conditions: [met], completedIndexes: '4' });
    const marked = { type: 'DeletionReason', status: 'True' as const, reason: 'Completed' };
    const pods = [
      jobPod('active', { index: 0 }),
      jobPod('deleted', { index: 1, deleted: true }),
      jobPod('deferring', { index: 2, deleted: true, defers: true }),
      jobPod('own', { index: 3, deleted: true, defers: true, conditions: [marked] }),
    ];
    const { untrack, status } = decide(job, pods);
    expect([names(untrack), status.uncountedTerminatedPods]).toEqual(['active deleted own', { failed: ['deleted'] }]);
  });

  test('a Job keeps its first verdict', () => {
    const conditions = [{ type: 'FailureTarget', status: 'True', reason: 'BackoffLimitExceeded', message: 'x' }];
    const job = storedJob({ activeDeadlineSeconds: 1 }, { conditions, failed: 7, succeeded: 1 });
    expect(trueConditions(decide(job, []))).toEqual([
      'FailureTarget BackoffLimitExceeded',
      'Failed BackoffLimitExceeded',
    ]);
  });

  test('a Job with 0 completions is complete at once', () => {
    expect(trueConditions(decide(storedJob({ completions: 0 }), []))[1]).toBe('Complete CompletionsReached');
  });

  test('more successes than completions give a warning', () => {
    const { events } = decide(storedJob({}, { succeeded: 2 }), []);
    expect(events.map(({ type, reason }) => `${type} ${reason}`)).toEqual([
      'Warning TooManySucceededPods',
      'Normal Completed',
    ]);
  });

  test('a Job that ends when it is resumed keeps its start, which the API does not let it change then', () => {
    const conditions = [{ type: 'Suspended', status: 'True', reason: 'JobSuspended', message: 'Job suspended' }];
    const job = storedJob({}, { conditions });
    expect(decide(job, [jobPod('p', { phase: 'Succeeded' })]).status.startTime).toBe(ago(60));
    const deleted = storedJob({}, { conditions }, { deletionTimestamp: ago(1), finalizers: ['foregroundDeletion'] });
    expect(decide(deleted, []).status.startTime).toBe(ago(60));
  });

  test('a Job that is resumed has its whole deadline again', () => {
    const conditions = [{ type: 'Suspended', status: 'True', reason: 'JobSuspended', message: 'Job suspended' }];
    const job = storedJob({ activeDeadlineSeconds: 30 }, { conditions });
    const decision = decide(job, []);
    expect([decision.status.startTime, decision.checkAt, decision.create.length]).toEqual([ago(0), NOW + 30_000, 1]);
  });
});
