import { expect, test } from 'vitest';
import type { CoreV1Event } from '../../api/generated/types.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { hintsFor } from '../hints.ts';
import { cannotCreate, currentRefusal, isRefusal, refusalNow, refusalOf } from './refused-pods.ts';

const HINTS = hintsFor({}, { KUBECONFIG: '/var/lib/lifepod/kubeconfig' }, undefined, false);
const event = (message: string, kind = 'Job', reason = 'FailedCreate'): CoreV1Event =>
  ({ reason, message, involvedObject: { kind, namespace: 'n' } }) as CoreV1Event;

test.each([
  ['Job', 'FailedCreate', true],
  ['ReplicaSet', 'FailedCreate', true],
  ['Job', 'SuccessfulCreate', false],
  ['CronJob', 'FailedCreate', false],
  ['Pod', 'FailedCreate', false],
])('an Event about a %s with the reason %s is a refusal: %s', (kind, reason, is) => {
  expect(isRefusal(event('', kind, reason))).toBe(is);
});

test.each<[string, string, string, string, string?]>([
  [
    'a quota',
    'Error creating: pods "x-1" is forbidden: exceeded quota: q, requested: pods=1, used: cpu=1,pods=0, limited: pods=0',
    'pods "x-1" is forbidden: exceeded quota: q, requested: pods=1, used: cpu=1,pods=0, limited: pods=0',
    'pods is forbidden: exceeded quota: q, limited: pods=0',
    'kubectl edit quota q -n n',
  ],
  [
    'a StatefulSet',
    'create Pod s-0 in StatefulSet s failed error: pods "s-0" is forbidden: no.',
    'pods "s-0" is forbidden: no',
    'pods is forbidden: no',
  ],
])(
  'the refusal of %s has the text of the API, and a cause that does not change',
  (_, message, text, cause, command) => {
    const { hint, ...refusal } = refusalOf(event(message), HINTS);
    expect(refusal).toEqual({ text, cause, isPassing: false });
    expect(hint?.command).toBe(command);
  },
);

const account = (name: string): string =>
  `Error creating: pods "x-1" is forbidden: error looking up service account n/${name}: serviceaccount "${name}" not found`;

test('a refusal names the ServiceAccount to create; the one that each namespace gets is expected soon', () => {
  expect(refusalOf(event(account('ghost')), HINTS)).toMatchObject({
    hint: { command: 'kubectl create serviceaccount ghost -n n' },
    isPassing: false,
  });
  expect(refusalOf(event(account('default')), HINTS).isPassing).toBe(true);
});

const at = (second: number): string => new Date(Date.UTC(2026, 0, 31, 11, 0, second)).toISOString();
/** A Deployment or ReplicaSet whose condition ReplicaFailure has been True since the second 5. */
const failing = (kind: string, uid: string, revision: number, reason = 'FailedCreate'): KubeObject =>
  ({
    apiVersion: 'apps/v1',
    kind,
    metadata: { name: uid, uid, annotations: { 'deployment.kubernetes.io/revision': `${revision}` } },
    status: {
      conditions: [
        { type: 'ReplicaFailure', status: 'True', reason, message: 'the first.', lastTransitionTime: at(5) },
      ],
    },
  }) as KubeObject;
const about = (uid: string, second: number, message: string, reason = 'FailedCreate'): CoreV1Event =>
  ({
    reason,
    message: `Error creating: ${message}.`,
    lastTimestamp: at(second),
    involvedObject: { kind: 'ReplicaSet', uid },
    metadata: {},
  }) as CoreV1Event;

test('the newest Event says why Pods cannot be created, and the condition ReplicaFailure only if no Event is as new', () => {
  const set = failing('ReplicaSet', 'r', 1);
  const web = failing('Deployment', 'd', 1);
  for (const [object, owners] of [
    [set, [set]],
    [web, [web, set]],
  ] as const) {
    const now = (...events: CoreV1Event[]): string | undefined => refusalNow(object, owners, events);
    expect(now()).toBe('the first');
    expect(now(about('r', 4, 'before'))).toBe('the first');
    expect(now(about('other', 9, 'elsewhere'))).toBe('the first');
    expect(now(about('r', 5, 'a'), about('r', 9, 'c'), about('r', 7, 'b'))).toBe('c');
    // Some of the Pods are created, and others refused, in the same second.
    expect(now(about('r', 9, 'c'), about('r', 9, 'Created pod: x', 'SuccessfulCreate'))).toBe('c');
  }
  const deleting = failing('ReplicaSet', 'r', 1, 'FailedDelete');
  expect(refusalNow(deleting, [deleting], [about('r', 9, 'c')])).toBeUndefined();
});

test('the newest of many Events is found', () => {
  const lacking = {
    ...failing('StatefulSet', 's', 1),
    kind: 'StatefulSet',
    spec: { replicas: 1 },
    status: {},
  } as KubeObject;
  const created = Array.from({ length: 130_000 }, () => about('s', 4, 'x', 'SuccessfulCreate'));
  expect(refusalNow(lacking, [lacking], [...created, about('s', 5, 'c')])).toBe('c');
});

test('the ReplicaSet with the current template says why a Deployment lacks Pods, although an older one is refused later', () => {
  const [web, old, current] = [
    failing('Deployment', 'd', 2),
    failing('ReplicaSet', 'old', 1),
    failing('ReplicaSet', 'current', 2),
  ];
  const newer = about('current', 8, 'its own');
  expect(currentRefusal([web, current, old], [about('old', 9, 'outdated'), newer])).toBe(newer);
});

test.each([
  [{}, 'cannot create Pods'],
  [{ replicas: 0 }, 'cannot create Pods'],
  [{ replicas: 2 }, 'cannot create more Pods'],
  [{ active: 1 }, 'cannot create more Pods'],
  [{ currentNumberScheduled: 1 }, 'cannot create more Pods'],
])('a workload with the status %o %s', (status, words) => {
  expect(cannotCreate({ ...failing('ReplicaSet', 'r', 1), status } as KubeObject)).toBe(words);
});
