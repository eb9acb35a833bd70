import { expect, test } from 'vitest';
import type { Pod, PodCondition } from '../../api/generated/types.ts';
import { type Cause, lastStatus } from './collect.ts';

const NODE_LOST: Pod['status'] = {
  phase: 'Running',
  containerStatuses: [{ name: 'app', image: 'x', imageID: 'x', ready: true, restartCount: 0, state: { running: {} } }],
};

const entries = (...names: string[]) => names.map((name) => ({ name, image: 'x' }));
const entryStatus = (name: string, state: object) => ({ ...NODE_LOST.containerStatuses?.[0], name, state });
const podWith = (status: Pod['status'], defers: string[] = []): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'a' },
  spec: {
    containers: [{ name: 'app', image: 'x' }],
    ...(defers.length > 0 && { deferContainers: entries(...defers) }),
  },
  status,
});
const shown = ({ type, status, reason, message }: PodCondition): string => `${type}=${status} ${reason}: ${message}`;
const BY_POD_GC = 'DisruptionTarget=True DeletionByPodGC: PodGC: node no longer exists';
const LOST = (names: string): string => `Deferred=False NodeLost: defer containers that did not complete: [${names}]`;

test.each<[string, Cause, Pod, string[] | undefined]>([
  ['a Pod that has ended', 'orphaned', podWith({ phase: 'Failed' }, ['e']), undefined],
  ['a Pod of the phase Unknown', 'orphaned', podWith({ phase: 'Unknown' }), [BY_POD_GC]],
  ['an unscheduled Pod', 'unscheduled', podWith({ phase: 'Pending' }, ['e']), []],
  ['a Pod out of service', 'out-of-service', podWith(NODE_LOST), []],
  ['defer containers out of service', 'out-of-service', podWith(NODE_LOST, ['e', 'f']), [LOST('e f')]],
  ['defer containers of a missing node', 'orphaned', podWith(NODE_LOST, ['e', 'f']), [BY_POD_GC, LOST('e f')]],
  [
    'a list that had begun',
    'orphaned',
    podWith(
      {
        ...NODE_LOST,
        phase: 'Terminating',
        conditions: [{ type: 'Deferred', status: 'False', reason: 'DeferContainersRunning' }],
        deferContainerStatuses: [
          entryStatus('e', { terminated: { exitCode: 0, reason: 'Completed' } }),
          entryStatus('f', { running: {} }),
        ],
      } as Pod['status'],
      ['e', 'f'],
    ),
    [BY_POD_GC, LOST('f')],
  ],
  [
    'a list of which an entry had failed',
    'orphaned',
    podWith(
      {
        ...NODE_LOST,
        deferContainerStatuses: [
          entryStatus('e', { terminated: { exitCode: 3, reason: 'Error' } }),
          entryStatus('f', { terminated: { exitCode: 137, reason: 'Skipped', message: 'not due on Deleted' } }),
          entryStatus('g', { running: {} }),
        ],
      } as Pod['status'],
      ['e', 'f', 'g'],
    ),
    [BY_POD_GC, `${LOST('g')}; defer containers that failed: [e]`],
  ],
  [
    'a list of which entries had no time, were lost or were given up',
    'orphaned',
    podWith(
      {
        ...NODE_LOST,
        deferContainerStatuses: [
          ['late', 'DeadlineExceeded', 'the grace period had passed'],
          ['lost', 'SandboxLost', 'the sandbox was lost'],
          ['skipped', 'Skipped', 'the PreExit stage had ended'],
          ['up', 'Skipped', 'given up'],
          ['slow', 'DeadlineExceeded', 'Container slow exceeded its timeoutSeconds'],
          ['done', 'Completed', 'given up'],
        ].map(([name = '', reason, message]) => entryStatus(name, { terminated: { exitCode: 137, reason, message } })),
      } as Pod['status'],
      ['late', 'lost', 'skipped', 'up', 'slow', 'done', 'open'],
    ),
    [BY_POD_GC, `${LOST('late lost skipped open')}; defer containers that failed: [up slow]`],
  ],
  [
    'a list that has ended',
    'orphaned',
    podWith({ ...NODE_LOST, conditions: [{ type: 'Deferred', status: 'True', reason: 'DeferContainersSucceeded' }] }, [
      'e',
    ]),
    [BY_POD_GC],
  ],
  [
    'a Pod of which no container had started',
    'orphaned',
    podWith({ phase: 'Pending' }, ['e']),
    [BY_POD_GC, 'Deferred=False DeferContainersSkipped: no container of the Pod had started'],
  ],
])('the last status of %s', (_, cause, pod, expected) => {
  const status = lastStatus(pod, cause, 0);
  expect(status?.phase).toBe(expected === undefined ? undefined : 'Failed');
  expect(status === undefined ? undefined : (status.conditions ?? []).map(shown)).toEqual(expected);
});

test('conditions that only get another reason keep their times', () => {
  const before = [
    {
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'DeletionByTaintManager',
      lastTransitionTime: '2026-01-31T00:00:00Z',
    },
    { type: 'Deferred', status: 'False', reason: 'DeferContainersRunning', lastTransitionTime: '2026-01-31T00:00:05Z' },
  ];
  const { conditions } = lastStatus(podWith({ ...NODE_LOST, conditions: before }, ['e']), 'orphaned', 0) ?? {};
  expect(conditions?.map(({ lastTransitionTime }) => lastTransitionTime)).toEqual([
    '2026-01-31T00:00:00Z',
    '2026-01-31T00:00:05Z',
  ]);
});
