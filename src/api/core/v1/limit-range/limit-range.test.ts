import { expect, it, test } from 'vitest';
import { created, headings, row } from '../../../testing.ts';
import { limitRangeKind } from './index.ts';

const rangeOf = (...limits: object[]) => created(limitRangeKind, { spec: { limits } });

test.each<[string, object, object]>([
  [
    'the maximum as the limit and the request',
    { type: 'Container', max: { cpu: '2' } },
    { default: { cpu: '2' }, defaultRequest: { cpu: '2' } },
  ],
  [
    'the limit as the request',
    { type: 'Container', max: { cpu: '2' }, min: { cpu: '100m' }, default: { cpu: '1' } },
    { default: { cpu: '1' }, defaultRequest: { cpu: '1' } },
  ],
  ['the minimum as the request', { type: 'Container', min: { cpu: '100m' } }, { defaultRequest: { cpu: '100m' } }],
  ['nothing for Pods', { type: 'Pod', max: { cpu: '2' } }, {}],
])('a new LimitRange gets %s', (_, item, defaults) => {
  const { object, errors } = rangeOf(item);
  expect(errors).toEqual([]);
  expect(object.spec?.limits).toEqual([{ ...item, ...defaults }]);
});

const path = 'spec.limits[0]';
const container = (lists: object) => ({ type: 'Container', ...lists });

test.each<[string, object, string[]]>([
  [
    'an unknown type',
    { type: 'Odd' },
    [`${path}.type: Invalid value: "Odd": must be a standard limit type or fully qualified`],
  ],
  ['a qualified type', { type: 'example.com/Odd', max: { storage: '1' } }, []],
  [
    'a resource that containers do not have',
    { type: 'Pod', max: { storage: '1' } },
    [`${path}.max[storage]: Invalid value: "storage": must be a standard resource for containers`],
  ],
  [
    'defaults for Pods',
    { type: 'Pod', default: { cpu: '1' }, defaultRequest: { cpu: '1' } },
    [
      `${path}.default: Forbidden: may not be specified when \`type\` is 'Pod'`,
      `${path}.defaultRequest: Forbidden: may not be specified when \`type\` is 'Pod'`,
    ],
  ],
  [
    'no storage for claims',
    { type: 'PersistentVolumeClaim', max: { pods: '1' } },
    [`${path}.limits: Required value: either minimum or maximum storage value is required, but neither was provided`],
  ],
  ['storage for claims', { type: 'PersistentVolumeClaim', min: { storage: '1Gi' } }, []],
  [
    'a minimum above the maximum',
    { type: 'Pod', min: { cpu: '2' }, max: { cpu: '1' } },
    [`${path}.min[cpu]: Invalid value: "2": min value 2 is greater than max value 1`],
  ],
  [
    'a default request below the minimum',
    container({ min: { cpu: '1' }, defaultRequest: { cpu: '500m' } }),
    [`${path}.defaultRequest[cpu]: Invalid value: "500m": min value 1 is greater than default request value 500m`],
  ],
  [
    'a default request above the limit and the maximum',
    container({ max: { cpu: '2' }, default: { cpu: '1' }, defaultRequest: { cpu: '3' } }),
    [
      `${path}.defaultRequest[cpu]: Invalid value: "3": default request value 3 is greater than max value 2`,
      `${path}.defaultRequest[cpu]: Invalid value: "3": default request value 3 is greater than default limit value 1`,
    ],
  ],
  [
    'a default limit below the minimum',
    container({ min: { cpu: '2' }, default: { cpu: '1' }, defaultRequest: { cpu: '2' } }),
    [
      `${path}.defaultRequest[cpu]: Invalid value: "2": default request value 2 is greater than default limit value 1`,
      `${path}.default[cpu]: Invalid value: "2": min value 2 is greater than default value 1`,
    ],
  ],
  [
    'a default limit above the maximum',
    container({ max: { cpu: '1' }, default: { cpu: '2' }, defaultRequest: { cpu: '1' } }),
    [`${path}.default[cpu]: Invalid value: "1": default value 2 is greater than max value 1`],
  ],
  [
    'a ratio below 1',
    { type: 'Pod', maxLimitRequestRatio: { cpu: '500m' } },
    [`${path}.maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1`],
  ],
  [
    'a ratio above that of the bounds',
    { type: 'Pod', min: { cpu: '400m' }, max: { cpu: '1' }, maxLimitRequestRatio: { cpu: '3' } },
    [`${path}.maxLimitRequestRatio[cpu]: Invalid value: "3": ratio 3 is greater than max/min = 2.500000`],
  ],
  [
    'different defaults of an extended resource',
    container({ default: { 'example.com/x': '2' }, defaultRequest: { 'example.com/x': '1' } }),
    [
      `${path}.defaultRequest[example.com/x]: Invalid value: "1": default value 2 must equal to defaultRequest value 1 in example.com/x`,
    ],
  ],
])('the rules for a LimitRange with %s', (_, item, errors) => {
  expect(rangeOf(item).errors).toEqual(errors);
});

it('a LimitRange has each type once', () => {
  expect(rangeOf({ type: 'Pod' }, { type: 'Container' }, { type: 'Pod' }).errors).toEqual([
    'spec.limits[2].type: Duplicate value: "Pod"',
  ]);
});

it('the table of LimitRanges shows the time of their creation', () => {
  expect(limitRangeKind.shortNames).toEqual(['limits']);
  expect(headings(limitRangeKind).all).toBe('NAME | CREATED AT');
  const creationTimestamp = '2026-01-31T11:59:00Z';
  expect(row(limitRangeKind, { metadata: { creationTimestamp } })).toEqual(['a', creationTimestamp]);
});
