import { expect, test } from 'vitest';
import type { CoreV1Event } from '../../api/generated/types.ts';
import { hintsFor } from '../hints.ts';
import { isRefusal, refusalOf } from './refused-pods.ts';

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
