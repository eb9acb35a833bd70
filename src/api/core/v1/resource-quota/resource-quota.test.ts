import { expect, it, test } from 'vitest';
import { fieldErrorText } from '../../../../machinery/field-error.ts';
import type { ResourceQuota } from '../../../generated/types.ts';
import { created, headings, row, updated } from '../../../testing.ts';
import { resourceQuotaKind } from './index.ts';

it('a new ResourceQuota has an empty status', () => {
  const { object, errors } = created(resourceQuotaKind, {
    spec: { hard: { pods: '2', 'requests.cpu': '1', 'count/jobs.batch': '3', 'requests.hugepages-2Mi': '4Mi' } },
    status: { hard: { pods: '1' } },
  });
  expect(errors).toEqual([]);
  expect(object.status).toEqual({});
});

const EXISTS =
  "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
const expressions = (...matchExpressions: object[]) => ({ scopeSelector: { matchExpressions } });

test.each<[string, object, unknown[]]>([
  [
    'an unknown resource',
    { hard: { colour: '1' } },
    [
      'spec.hard[colour]: Invalid value: "colour": must be a standard resource type or fully qualified',
      'spec.hard[colour]: Invalid value: "colour": must be a standard resource for quota',
    ],
  ],
  [
    'a resource that only LimitRanges have',
    { hard: { storage: '1' } },
    ['spec.hard[storage]: Invalid value: "storage": must be a standard resource for quota'],
  ],
  [
    'a negative amount',
    { hard: { cpu: '-1' } },
    ['spec.hard[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
  ],
  [
    'a fraction of an object',
    { hard: { pods: '1500m' } },
    ['spec.hard[pods]: Invalid value: "1500m": must be an integer'],
  ],
  ['an unknown scope', { scopes: ['Odd'] }, ['spec.scopes: Invalid value: ["Odd"]: unsupported scope']],
  ['a scope of Pods with compute resources', { hard: { 'limits.cpu': '1' }, scopes: ['NotBestEffort'] }, []],
  [
    'a scope that does not apply to a resource',
    { hard: { cpu: '1', pods: '1', 'example.com/x': '1' }, scopes: ['BestEffort'] },
    ['spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource'],
  ],
  [
    'scopes that exclude each other',
    { scopes: ['Terminating', 'NotTerminating'] },
    ['spec.scopes: Invalid value: ["Terminating","NotTerminating"]: conflicting scopes'],
  ],
  [
    'classes of priority',
    { hard: { pods: '1' }, ...expressions({ scopeName: 'PriorityClass', operator: 'In', values: ['high'] }) },
    [],
  ],
  [
    'an unknown scope and operator in a selector',
    expressions({ scopeName: 'Odd', operator: 'Like' }),
    [
      'spec.scopeSelector.matchExpressions.scopeName: Invalid value: "Odd": unsupported scope',
      'spec.scopeSelector.matchExpressions.operator: Invalid value: "Like": not a valid selector operator',
    ],
  ],
  [
    'a selector without values',
    expressions({ scopeName: 'PriorityClass', operator: 'NotIn' }),
    [
      "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
    ],
  ],
  [
    'values for a scope that has none',
    expressions({ scopeName: 'BestEffort', operator: 'In', values: ['a'] }),
    [`spec.scopeSelector.matchExpressions.operator: Invalid value: "In": ${EXISTS}`],
  ],
  [
    'values for the existence of a scope',
    expressions({ scopeName: 'BestEffort', operator: 'Exists', values: ['a'] }),
    [
      "spec.scopeSelector.matchExpressions.values: Invalid value: [\"a\"]: must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
    ],
  ],
])('the rules for a ResourceQuota with %s', (_, spec, errors) => {
  expect(created(resourceQuotaKind, { spec }).errors).toEqual(errors);
});

it('the scopes of a ResourceQuota are immutable, but not their order', () => {
  const spec = { hard: { pods: '1' }, scopes: ['NotBestEffort', 'Terminating'] };
  expect(
    updated(resourceQuotaKind, { spec }, { spec: { ...spec, scopes: ['Terminating', 'NotBestEffort'] } }).errors,
  ).toEqual([]);
  expect(updated(resourceQuotaKind, { spec }, { spec: { hard: { pods: '1' } } }).errors).toEqual([
    'spec.scopes: Invalid value: null: field is immutable',
  ]);
});

it('the status of a ResourceQuota has valid names and amounts', () => {
  const old = created(resourceQuotaKind, {}).object;
  old.metadata = { ...old.metadata, resourceVersion: '1' };
  const quota: ResourceQuota = { ...old, status: { hard: { pods: '-1' }, used: { colour: '1' } } };
  expect(resourceQuotaKind.subresources['status']?.validate?.(quota, old).map(fieldErrorText)).toEqual([
    'status.hard[pods]: Invalid value: "-1": must be greater than or equal to 0',
    'status.used[colour]: Invalid value: "colour": must be a standard resource type or fully qualified',
    'status.used[colour]: Invalid value: "colour": must be a standard resource for quota',
  ]);
});

it('the table of ResourceQuotas shows used and allowed amounts', () => {
  expect(resourceQuotaKind.shortNames).toEqual(['quota']);
  expect(headings(resourceQuotaKind).all).toBe('NAME | REQUEST | LIMIT | AGE');
  const status = {
    hard: { 'requests.cpu': '2', pods: '3', 'limits.memory': '1Gi', 'limits.cpu': '4' },
    used: { pods: '1', 'limits.cpu': '500m' },
  };
  const metadata = { creationTimestamp: '2026-01-31T11:59:00Z' };
  expect(row(resourceQuotaKind, { metadata, status })).toEqual([
    'a',
    'pods: 1/3, requests.cpu: 0/2',
    'limits.cpu: 500m/4, limits.memory: 0/1Gi',
    '60s',
  ]);
});
