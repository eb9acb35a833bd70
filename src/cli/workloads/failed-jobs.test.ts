import { expect, test } from 'vitest';
import type { CoreV1Event, Job } from '../../api/generated/types.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { hintsFor } from '../hints.ts';
import { explainPodless } from './explain-workload.ts';

const HINTS = hintsFor({}, { KUBECONFIG: '/var/lib/lifepod/kubeconfig' }, undefined, false);
const CRON: KubeObject = {
  ...{ apiVersion: 'batch/v1', kind: 'CronJob', metadata: { name: 'c', namespace: 'n', uid: 'c' } },
  ...{ spec: { schedule: '0 4 * * *' } },
};

function job(name: string, type: string, reason: string, more: object = {}): Job {
  const lastTransitionTime = `2026-01-31T11:00:0${name.length}Z`;
  return {
    ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name, namespace: 'n', uid: name, ...more } },
    spec: { activeDeadlineSeconds: 4, template: {} },
    status: { conditions: [{ type, status: 'True', reason, message: 'it is said.', lastTransitionTime }] },
  } as Job;
}

const eventOf = (uid: string, type: string, reason: string, message: string): CoreV1Event =>
  ({
    ...{ type, reason, message, lastTimestamp: '2026-01-31T11:00:00Z', metadata: {} },
    involvedObject: { kind: 'Job', uid },
  }) as CoreV1Event;

const explain = (object: KubeObject, events: readonly CoreV1Event[] = [], owners: readonly KubeObject[] = [object]) =>
  explainPodless({
    ...{
      title: `${object.kind.toLowerCase()}/${object.metadata.name}`,
      namespace: 'n',
      object,
      owners,
      pods: [],
      events,
    },
    ...{ hints: HINTS, now: Date.UTC(2026, 0, 31, 12) },
  });

const describe = { description: 'see its conditions and Events', command: 'kubectl describe job x -n n' };

test('a failed Job without Pods is explained as failed, with its last Pod and what to change', () => {
  const events = [
    eventOf('x', 'Normal', 'SuccessfulCreate', 'Created pod: x-1'),
    eventOf('x', 'Warning', 'DeadlineExceeded', 'it is said'),
  ];
  expect(explain(job('x', 'Failed', 'DeadlineExceeded'), events)).toEqual({
    sentence: 'job/x has failed: DeadlineExceeded, it is said.',
    evidence: ['it no longer has Pods'],
    actions: [
      { description: 'see how its last Pod ended', command: 'lifepod why x-1 -n n' },
      {
        description: 'delete it, and create it again with a higher spec.activeDeadlineSeconds, which is 4',
        command: 'kubectl delete job x -n n',
      },
      describe,
    ],
  });
});

test.each(['BackoffLimitExceeded', 'FailedIndexes'])('a Job that failed by %s must be created again', (reason) => {
  expect(explain(job('x', 'Failed', reason)).actions).toEqual([
    {
      description: 'delete it, and create it again after you have removed the cause',
      command: 'kubectl delete job x -n n',
    },
    describe,
  ]);
});

test('a complete Job without Pods is explained as complete', () => {
  expect(explain(job('x', 'Complete', 'CompletionsReached'))).toEqual({
    sentence: 'job/x is complete: nothing is left to do.',
    evidence: ['it no longer has Pods'],
    actions: [],
  });
});

test('a CronJob names its last Job if that one has failed, but not an earlier one', () => {
  const ownerReferences = [{ apiVersion: 'batch/v1', kind: 'CronJob', name: 'c', uid: 'c', controller: true }];
  const failed = job('c-12', 'Failed', 'DeadlineExceeded', { ownerReferences });
  const events = [eventOf('c-12', 'Warning', 'DeadlineExceeded', 'it is said')];
  const { sentence, evidence, actions } = explain(CRON, events, [CRON, job('c-1', 'Complete', ''), failed]);
  expect(sentence).toBe('cronjob/c has no Pods: none of its Jobs has Pods now, its schedule is 0 4 * * *.');
  expect(evidence).toEqual(['its last Job c-12 has failed: DeadlineExceeded, it is said']);
  expect(actions[0]).toEqual({
    description: 'give its Jobs more time: raise spec.jobTemplate.spec.activeDeadlineSeconds, which is 4',
    command: 'kubectl edit cronjob c -n n',
  });
  const later = explain(CRON, events, [CRON, job('c-123', 'Complete', ''), failed]);
  expect(later.sentence).toBe(sentence);
  expect(later.evidence).toEqual([]);
});
