import { expect, test } from 'vitest';
import { fieldErrorText } from '../../../machinery/field-error.ts';
import type { KubeObject } from '../../../machinery/meta.ts';
import { anyKind } from '../../catalog.ts';
import { localSubjectAccessReviewKind } from './local-subject-access-review/index.ts';
import { selfSubjectAccessReviewKind } from './self-subject-access-review/index.ts';
import { selfSubjectRulesReviewKind } from './self-subject-rules-review/index.ts';
import { subjectAccessReviewKind } from './subject-access-review/index.ts';

const kinds = {
  subject: anyKind(subjectAccessReviewKind),
  local: anyKind(localSubjectAccessReviewKind),
  self: anyKind(selfSubjectAccessReviewKind),
};

const resourceAttributes = { verb: 'get', resource: 'pods', namespace: 'n' };
const nonResourceAttributes = { verb: 'get', path: '/healthz' };

test.each<[keyof typeof kinds, string, object, object, string[]]>([
  ['subject', 'a resource', { user: 'u', resourceAttributes }, {}, []],
  ['subject', 'a group', { groups: ['g'], nonResourceAttributes }, {}, []],
  [
    'subject',
    'nothing',
    {},
    {},
    [
      'spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified',
      'spec.user: Invalid value: "": at least one of user or group must be specified',
    ],
  ],
  [
    'self',
    'a resource and a path',
    { resourceAttributes, nonResourceAttributes },
    {},
    [
      'spec.nonResourceAttributes: Invalid value: {"verb":"get","path":"/healthz"}: cannot be specified in combination with resourceAttributes',
    ],
  ],
  ['self', 'a name', { resourceAttributes }, { name: 'a' }, ['metadata: Invalid value: {"name":"a"}: must be empty']],
  ['local', 'its namespace', { user: 'u', resourceAttributes }, { namespace: 'n' }, []],
  [
    'local',
    'another namespace',
    { user: 'u', resourceAttributes },
    { namespace: 'm' },
    ['spec.resourceAttributes.namespace: Invalid value: "n": must match metadata.namespace'],
  ],
  [
    'local',
    'a path and labels',
    { user: 'u', nonResourceAttributes },
    { namespace: 'm', labels: { a: 'b' } },
    [
      'metadata: Invalid value: {"namespace":"m","labels":{"a":"b"}}: must be empty except for namespace',
      'spec.nonResourceAttributes: Invalid value: {"verb":"get","path":"/healthz"}: disallowed on this kind of request',
    ],
  ],
])('the errors of a %s review about %s', (kind, _, spec, metadata, errors) => {
  const object = { apiVersion: 'authorization.k8s.io/v1', kind: 'Review', spec, metadata } as unknown as KubeObject;
  expect(kinds[kind].validateCreate(object).map(fieldErrorText)).toEqual(errors);
});

test('an answer with too many rules is incomplete', async () => {
  const { createOnly } = selfSubjectRulesReviewKind;
  if (createOnly === undefined || !('review' in createOnly)) throw new Error('not a review');
  const role = Array.from({ length: 1000 }, (_, index) => ({
    apiGroups: [''],
    resources: ['secrets'],
    resourceNames: [`${index}-${'x'.repeat(1000)}`],
    verbs: ['get'],
  }));
  const answer = await createOnly.review(
    {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectRulesReview',
      metadata: { name: '' },
      spec: { namespace: 'n' },
    },
    {
      user: { name: 'u', groups: [] },
      now: 0,
      judgeToken: async () => ({ error: '' }),
      authorize: async () => ({ allowed: false, reason: '' }),
      rulesFor: async () => ({ roles: Array.from({ length: 10 }, () => role), errors: ['absent'] }),
    },
  );
  expect(answer.status?.incomplete).toBe(true);
  expect(answer.status?.resourceRules.length).toBeGreaterThan(4000);
  expect(answer.status?.resourceRules.length).toBeLessThan(4200);
  expect(answer.status?.evaluationError).toBe('[absent, the rules are too many for a response]');
});
