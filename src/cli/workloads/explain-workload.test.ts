import { expect, test } from 'vitest';
import type { CoreV1Event, Pod } from '../../api/generated/types.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { hintsFor } from '../hints.ts';
import type { Explanation } from '../why/subject.ts';
import { explainByPod, explainPodless, worstPod } from './explain-workload.ts';

const NOW = Date.UTC(2026, 0, 31, 12);
const HINTS = hintsFor({}, { KUBECONFIG: '/var/lib/lifepod/kubeconfig' }, undefined, false);
const pod = (name: string, phase: string, ready = false, more: object = {}): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'n', creationTimestamp: '2026-01-31T11:00:00Z', ...more },
    spec: { containers: [{ name: 'app', image: 'x' }] },
    status: { phase, conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
  }) as Pod;
const object = (more: object = {}): KubeObject => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name: 'x' },
  ...more,
});
const given = (more: object = {}) => ({
  title: 'job/x',
  namespace: 'n',
  object: object(),
  pods: [],
  events: [],
  hints: HINTS,
  now: NOW,
  ...more,
});

test('a Pod that is not ready needs more attention than a failed one, and that more than a ready one', () => {
  const all = [pod('done', 'Succeeded'), pod('good', 'Running', true), pod('bad', 'Failed'), pod('slow', 'Pending')];
  const names: (string | undefined)[] = [];
  for (let left = all; left.length > 0; left = left.filter((each) => each !== worstPod(object(), left)))
    names.push(worstPod(object(), left)?.metadata.name);
  expect(names).toEqual(['slow', 'bad', 'good', 'done']);
  const newer = pod('newer', 'Failed', false, { creationTimestamp: '2026-01-31T11:30:00Z' });
  expect(worstPod(object(), [pod('older', 'Failed'), newer])).toBe(newer);
  expect(worstPod(object(), [])).toBeUndefined();
});

function endedByShutdown(name: string): Pod {
  const ended = pod(name, 'Failed');
  ended.status = {
    ...ended.status,
    reason: 'Terminated',
    message: 'Pod was terminated in response to imminent node shutdown.',
    conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'TerminationByKubelet' }],
  };
  return ended;
}

test('failed Pods of a workload with all its ready Pods are reported as replaced, and not as its trouble', () => {
  const web = object({ kind: 'Deployment', spec: { replicas: 1 } });
  const good = pod('good', 'Running', true);
  const old = endedByShutdown('old');
  const found: Explanation = { sentence: 'good is running: its container is ready.', evidence: [], actions: [] };
  expect(worstPod(web, [old, good])).toBe(good);
  expect(explainByPod(given({ title: 'deployment/x', object: web, pods: [old, good] }), good, found)).toEqual({
    sentence: 'deployment/x has its 1 ready Pod; 1 failed Pod of it still exists, which another Pod has replaced.',
    evidence: [
      'good is running: its container is ready',
      'Pod old: Terminated, Pod was terminated in response to imminent node shutdown',
    ],
    actions: [
      { description: 'delete the failed Pod, with the logs', command: 'kubectl delete pod old -n n' },
      { description: 'see why one has failed', command: 'lifepod why old -n n' },
    ],
  });
  const daemons = object({ kind: 'DaemonSet', status: { desiredNumberScheduled: 2 } });
  const pods = [pod('old', 'Failed'), pod('older', 'Failed'), good, pod('better', 'Running', true)];
  expect(explainByPod(given({ title: 'daemonset/x', object: daemons, pods }), good, found).sentence).toBe(
    'daemonset/x has its 2 ready Pods; 2 failed Pods of it still exist, which other Pods have replaced.',
  );
});

test('a failed Pod stays the trouble of a workload without all its ready Pods, and of a Job', () => {
  const [bad, good] = [pod('bad', 'Failed'), pod('good', 'Running', true)];
  expect(worstPod(object({ spec: { replicas: 2 } }), [bad, good])).toBe(bad);
  expect(worstPod(object({ spec: { completions: 1 } }), [bad, good])).toBe(bad);
  const slow = pod('slow', 'Pending');
  const surging = object({ spec: { replicas: 1 } });
  expect(worstPod(surging, [bad, good, slow])).toBe(slow);
  const found: Explanation = { sentence: 'slow is starting.', evidence: [], actions: [] };
  const pods = [bad, good, slow];
  expect(explainByPod(given({ object: surging, pods }), slow, found).sentence).toBe('job/x: slow is starting.');
});

test('a Job continues if other Pods have replaced those that its node has ended, but not if a Pod failed by itself', () => {
  const good = pod('good', 'Running', true);
  const old = endedByShutdown('old');
  const job = object({ spec: { backoffLimit: 2 }, status: { active: 1, failed: 1 } });
  const found: Explanation = { sentence: 'good is running: its container is ready.', evidence: [], actions: [] };
  expect(worstPod(job, [old, good])).toBe(good);
  expect(explainByPod(given({ object: job, pods: [old, good] }), good, found)).toEqual({
    sentence:
      'job/x continues: it has its 1 ready Pod; 1 failed Pod of it still exists, which another Pod has replaced.',
    evidence: [
      'good is running: its container is ready',
      'Pod old: Terminated, Pod was terminated in response to imminent node shutdown',
      'its status.failed is 1, its spec.backoffLimit 2',
    ],
    actions: [
      { description: 'delete the failed Pod, with the logs', command: 'kubectl delete pod old -n n' },
      { description: 'see why one has failed', command: 'lifepod why old -n n' },
    ],
  });
  const cron = object({ kind: 'CronJob', status: { active: [{ name: 'x' }] } });
  const owners = [cron, job];
  expect(worstPod(cron, [old, good], owners)).toBe(good);
  const more = { title: 'cronjob/x', object: cron, pods: [old, good], owners };
  expect(explainByPod(given(more), good, found).sentence).toMatch(/^cronjob\/x continues: it has its 1 ready Pod; /);
  const bad = pod('bad', 'Failed');
  expect(worstPod(job, [old, bad, good])).toBe(bad);
  expect(worstPod(object({ status: { active: 2 } }), [old, good])).toBe(old);
});

test('a workload is explained by one of its Pods, after the condition with which it failed', () => {
  const [bad, good] = [pod('bad', 'Failed'), pod('good', 'Running', true)];
  const found: Explanation = { sentence: 'bad has failed: it.', evidence: ['fact'], actions: [{ description: 'act' }] };
  const conditions = [{ type: 'Failed', status: 'True', reason: 'BackoffLimitExceeded', message: 'the limit.' }];
  expect(explainByPod(given({ pods: [bad, good] }), bad, found)).toEqual({
    sentence: 'job/x: bad has failed: it.',
    evidence: ['fact', 'Pod good: ready'],
    actions: [{ description: 'act' }, { description: 'see another of its Pods', command: 'lifepod why good -n n' }],
  });
  expect(explainByPod(given({ pods: [bad], object: object({ status: { conditions } }) }), bad, found)).toEqual({
    sentence: 'job/x has failed (BackoffLimitExceeded, the limit): bad has failed: it.',
    evidence: ['fact'],
    actions: [{ description: 'act' }],
  });
});

test('another Pod of a workload that has failed is listed with the cause, also if its first container ended with code 0', () => {
  const ended = (name: string, exitCode: number, reason: string) => ({
    name,
    state: { terminated: { exitCode, reason } },
  });
  const failed = (name: string, status: object): Pod => {
    const own = pod(name, 'Failed');
    own.spec?.containers.push({ name: 'side', image: 'x' });
    return { ...own, status: { ...own.status, ...status } } as Pod;
  };
  const [app, side] = [ended('app', 0, 'Completed'), ended('side', 137, 'OOMKilled')];
  const [bad, undone, killed] = [
    failed('bad', {}),
    failed('undone', {
      reason: 'DeferContainerFailed',
      message: 'defer containers that failed: [up]',
      containerStatuses: [app],
    }),
    failed('killed', { containerStatuses: [app, side] }),
  ];
  const found: Explanation = { sentence: 'bad has failed: it.', evidence: [], actions: [] };
  expect(explainByPod(given({ pods: [bad, undone, killed] }), bad, found).evidence).toEqual([
    'Pod undone: DeferContainerFailed, defer containers that failed: [up]',
    'Pod killed: OOMKilled',
  ]);
});

test('a complete Job is reported as complete although some of its Pods failed', () => {
  const ownerReferences = [{ apiVersion: 'batch/v1', kind: 'Job', name: 'x', uid: 'u', controller: true }];
  const conditions = [{ type: 'Complete', status: 'True' }];
  const job = object({ metadata: { name: 'x', uid: 'u' }, status: { conditions } });
  const [bad, worse, done] = [
    pod('bad', 'Failed', false, { ownerReferences }),
    pod('worse', 'Failed', false, { ownerReferences }),
    pod('done', 'Succeeded', false, { ownerReferences }),
  ];
  const found: Explanation = { sentence: 'done has completed.', evidence: [], actions: [{ description: 'act' }] };
  expect(worstPod(job, [bad, done])).toBe(done);
  expect(explainByPod(given({ object: job, pods: [bad, done] }), done, found)).toEqual({
    sentence: 'job/x is complete, although 1 of its Pods failed: nothing is left to do.',
    evidence: ['done has completed', 'Pod bad: Failed'],
    actions: [{ description: 'see why it failed', command: 'lifepod why bad -n n' }],
  });
  const both = explainByPod(given({ object: job, pods: [bad, worse, done] }), done, found);
  expect(both.sentence).toBe('job/x is complete, although 2 of its Pods failed: nothing is left to do.');
  expect(explainByPod(given({ object: job, pods: [done] }), done, found)).toEqual({
    sentence: 'job/x is complete: nothing is left to do.',
    evidence: ['done has completed'],
    actions: [],
  });
  expect(worstPod(job, [bad])).toBe(bad);
  const cron = object({ kind: 'CronJob' });
  expect(worstPod(cron, [bad, done], [cron, job])).toBe(done);
  expect(worstPod(cron, [bad, done], [cron, object({ metadata: { name: 'x', uid: 'u' } })])).toBe(bad);
});

const event = (type: string, message: string): CoreV1Event =>
  ({
    type,
    reason: 'FailedCreate',
    message,
    lastTimestamp: '2026-01-31T11:59:50Z',
    involvedObject: {},
    metadata: {},
  }) as CoreV1Event;

test.each<[string, object, string]>([
  [
    'whose Pods are refused',
    {
      events: [
        event('Normal', 'other'),
        event('Warning', 'Error creating: pods "x-1" is forbidden: violates PodSecurity "restricted"'),
      ],
    },
    'job/x has no Pods: pods "x-1" is forbidden: violates PodSecurity "restricted".',
  ],
  [
    'whose Pods are refused to a StatefulSet',
    { events: [event('Warning', 'create Pod x-0 in StatefulSet x failed error: pods "x-0" is forbidden: no')] },
    'job/x has no Pods: pods "x-0" is forbidden: no.',
  ],
  ['that is suspended', { object: object({ spec: { suspend: true } }) }, 'job/x has no Pods: it is suspended.'],
  ['that wants no Pods', { object: object({ spec: { replicas: 0 } }) }, 'job/x has no Pods: its spec.replicas is 0.'],
  [
    'whose time has not come',
    { object: object({ spec: { schedule: '0 4 * * *', suspend: false } }) },
    'job/x has no Pods: none of its Jobs has Pods now, its schedule is 0 4 * * *.',
  ],
  ['that is new', {}, 'job/x has no Pods: they have not been created yet, or were deleted.'],
])('the reason is reported for which a workload %s has no Pods', (_, more, sentence) => {
  const explanation = explainPodless(given(more));
  expect(explanation.sentence).toBe(sentence);
  expect(explanation.actions.at(-1)).toEqual({
    description: 'see its conditions and Events',
    command: 'kubectl describe job x -n n',
  });
});

test('the ServiceAccount whose absence keeps the Pods from being created can be created', () => {
  const message = 'pods "x-1" is forbidden: error looking up service account n/ghost: serviceaccount "ghost" not found';
  const { sentence, actions } = explainPodless(given({ events: [event('Warning', `Error creating: ${message}`)] }));
  expect(sentence).toBe(`job/x has no Pods: ${message}.`);
  expect(actions[0]).toEqual({
    description: 'create the ServiceAccount, and the Pods are created automatically',
    command: 'kubectl create serviceaccount ghost -n n',
  });
});

test('a schedule that never occurs is named as the cause', () => {
  const message = 'invalid schedule: 0 0 31 2 * : time difference between two schedules is less than 1 second';
  const { sentence, evidence, actions } = explainPodless(given({ events: [event('Warning', message)] }));
  expect(sentence).toBe('job/x has no Pods: its schedule 0 0 31 2 * has no time in the next five years.');
  expect(evidence[0]).toContain(message);
  expect(actions[0]?.description).toMatch(/^correct the spec\.schedule of the CronJob: /);
});

const QUOTA = 'pods "x-2" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1';
const refusing = (reason: string, lastTimestamp: string): CoreV1Event =>
  ({
    type: 'Warning',
    reason,
    message: `Error creating: ${QUOTA}`,
    lastTimestamp,
    involvedObject: { kind: 'Job', uid: 'u' },
    metadata: {},
  }) as CoreV1Event;

test('a Pod that is being stopped is not called ready, and the line names the defer container that runs', () => {
  const deletionTimestamp = '2026-01-31T11:59:00Z';
  const [good, plain, busy] = [
    pod('good', 'Running', true),
    pod('plain', 'Running', true, { deletionTimestamp }),
    pod('busy', 'Running', true, { deletionTimestamp }),
  ];
  busy.spec = { ...busy.spec, deferContainers: [{ name: 'bye', image: 'x' }] } as Pod['spec'];
  busy.status = {
    ...busy.status,
    termination: { reason: 'Deleted', startedAt: deletionTimestamp, deadline: deletionTimestamp },
    deferContainerStatuses: [{ name: 'bye', state: { running: { startedAt: deletionTimestamp } } }],
  } as Pod['status'];
  const found: Explanation = { sentence: 'good is running.', evidence: [], actions: [] };
  const web = object({ kind: 'Deployment', spec: { replicas: 1 } });
  expect(explainByPod(given({ object: web, pods: [good, plain, busy] }), good, found).evidence).toEqual([
    'Pod plain: being stopped (Terminating)',
    'Pod busy: being stopped, its defer container bye runs (Defer:0/1)',
  ]);
});

test('a Deployment that is paused during a rollout is explained as paused, and can be resumed', () => {
  const good = pod('good', 'Running', true);
  const found: Explanation = { sentence: 'good is running.', evidence: [], actions: [] };
  const web = (status: object): KubeObject =>
    object({
      kind: 'Deployment',
      metadata: { name: 'x', namespace: 'n' },
      spec: { replicas: 1, paused: true },
      status,
    });
  const explained = (status: object) =>
    explainByPod(given({ title: 'deployment/x', object: web(status), pods: [good] }), good, found);
  expect(explained({ replicas: 1 })).toEqual({
    sentence: 'deployment/x is paused during a rollout (Pods with the current template: 0 of 1): good is running.',
    evidence: [],
    actions: [{ description: 'resume it', command: 'kubectl rollout resume deployment/x -n n' }],
  });
  expect(explained({ replicas: 2, updatedReplicas: 1 }).sentence).toMatch(/^deployment\/x is paused during a rollout /);
  expect(explained({ replicas: 1, updatedReplicas: 1 }).sentence).toBe('deployment/x: good is running.');
});

test('a refusal of its other Pods explains a workload although a Pod of it runs', () => {
  const good = pod('good', 'Running', true);
  const found: Explanation = { sentence: 'good is running.', evidence: ['fact'], actions: [] };
  const conditions = [{ type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: QUOTA }];
  const web = object({ kind: 'Deployment', spec: { replicas: 3 }, status: { conditions } });
  expect(explainByPod(given({ title: 'deployment/x', object: web, pods: [good] }), good, found)).toEqual({
    sentence: `deployment/x cannot create more Pods: ${QUOTA}.`,
    evidence: ['good is running', 'fact'],
    actions: [
      {
        description: 'raise the quota q, or lower the number of Pods or what they request',
        command: 'kubectl edit quota q -n n',
      },
      { description: 'see its conditions and Events', command: 'kubectl describe deployment x -n n' },
    ],
  });
  const set = object({ kind: 'ReplicaSet', metadata: { name: 'x', uid: 'u' }, status: { conditions } });
  const later = { type: 'Warning', reason: 'FailedCreate', message: 'Error creating: later', metadata: {} };
  const events = [{ ...later, involvedObject: { kind: 'ReplicaSet', uid: 'u' } } as CoreV1Event];
  const refusedLater = given({ title: 'deployment/x', object: web, owners: [web, set], events });
  expect(explainByPod({ ...refusedLater, pods: [good] }, good, found).sentence).toBe(
    'deployment/x cannot create more Pods: later.',
  );
  expect(explainPodless(refusedLater).sentence).toBe('deployment/x has no Pods: later.');
  const job = object({ metadata: { name: 'x', uid: 'u' }, spec: { parallelism: 3 }, status: { active: 1 } });
  const sentenceOf = (...events: CoreV1Event[]): string =>
    explainByPod(given({ object: job, pods: [good], events }), good, found).sentence;
  const refused = refusing('FailedCreate', '2026-01-31T11:00:10Z');
  expect(sentenceOf(refused)).toBe(`job/x cannot create more Pods: ${QUOTA}.`);
  expect(sentenceOf(refused, refusing('SuccessfulCreate', '2026-01-31T11:00:20Z'))).toBe('job/x: good is running.');
});
