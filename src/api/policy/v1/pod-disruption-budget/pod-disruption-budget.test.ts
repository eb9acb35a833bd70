import { expect, it, test } from 'vitest';
import { fieldErrorText } from '../../../../machinery/field-error.ts';
import type { PodDisruptionBudget } from '../../../generated/types.ts';
import { created, headings, row, updated } from '../../../testing.ts';
import { podDisruptionBudgetKind } from './index.ts';

const none = { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 };

it('a new PodDisruptionBudget allows no disruptions yet', () => {
  const { object, errors } = created(podDisruptionBudgetKind, {
    spec: { minAvailable: '50%', selector: { matchLabels: { app: 'a' } }, unhealthyPodEvictionPolicy: 'AlwaysAllow' },
    status: { ...none, disruptionsAllowed: 3 },
  });
  expect(errors).toEqual([]);
  expect(object).toMatchObject({ metadata: { generation: 1 }, status: none });
});

const PERCENT =
  "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%', or '93%', regex used for validation is '[0-9]+%')";

test.each<[string, object, unknown[]]>([
  [
    'both amounts',
    { minAvailable: 1, maxUnavailable: 1 },
    ['spec: Invalid value: {"minAvailable":1,"maxUnavailable":1}: minAvailable and maxUnavailable cannot be both set'],
  ],
  [
    'a negative amount',
    { minAvailable: -1 },
    ['spec.minAvailable: Invalid value: -1: must be greater than or equal to 0'],
  ],
  ['no percentage', { maxUnavailable: '1' }, [`spec.maxUnavailable: Invalid value: "1": ${PERCENT}`]],
  [
    'more than 100%',
    { maxUnavailable: '101%' },
    ['spec.maxUnavailable: Invalid value: "101%": must not be greater than 100%'],
  ],
  [
    'an invalid selector',
    { selector: { matchLabels: { a: '-' } } },
    [expect.stringMatching(/^spec\.selector\.matchLabels: Invalid value: "-": a valid label must be/)],
  ],
  [
    'an unknown policy',
    { unhealthyPodEvictionPolicy: 'Odd' },
    ['spec.unhealthyPodEvictionPolicy: Unsupported value: "Odd": supported values: "AlwaysAllow", "IfHealthyBudget"'],
  ],
])('the rules for a PodDisruptionBudget with %s', (_, spec, errors) => {
  expect(created(podDisruptionBudgetKind, { spec }).errors).toEqual(errors);
});

it('an update of the spec of a PodDisruptionBudget increments its generation', () => {
  const from = { spec: { minAvailable: 1 } };
  const generation = (to: Record<string, unknown>) =>
    updated(podDisruptionBudgetKind, from, to).object.metadata.generation;
  expect(generation({ ...from, metadata: { labels: { a: 'b' } } })).toBe(1);
  expect(generation({ spec: { maxUnavailable: 1 } })).toBe(2);
});

it('the status of a PodDisruptionBudget has numbers that are not negative, and valid conditions', () => {
  const old = created(podDisruptionBudgetKind, {}).object;
  old.metadata = { ...old.metadata, resourceVersion: '1' };
  const good = { type: 'A', status: 'True', lastTransitionTime: '2026-01-31T12:00:00Z', reason: 'R', message: '' };
  const conditions = [
    good,
    good,
    { type: '', status: 'Odd', observedGeneration: -1, reason: '' },
    { ...good, type: 'a b', reason: '1' },
    { ...good, type: 'B', reason: 'R'.repeat(1025), message: 'm'.repeat(32 * 1024 + 1) },
  ];
  const status = { ...none, disruptionsAllowed: -1, conditions };
  const budget = { ...old, status } as PodDisruptionBudget;
  expect(podDisruptionBudgetKind.subresources['status']?.validate?.(budget, old).map(fieldErrorText)).toEqual([
    'status.conditions[1].type: Duplicate value: "A"',
    'status.conditions[2].type: Required value: must be set',
    'status.conditions[2].status: Unsupported value: "Odd": supported values: "False", "True", "Unknown"',
    'status.conditions[2].observedGeneration: Invalid value: -1: must be greater than or equal to zero',
    'status.conditions[2].lastTransitionTime: Required value: must be set',
    'status.conditions[2].reason: Required value: must be set',
    expect.stringMatching(/^status\.conditions\[3\]\.type: Invalid value: "a b": name part must consist of/),
    expect.stringMatching(/^status\.conditions\[3\]\.reason: Invalid value: "1": a condition reason must start with/),
    'status.conditions[4].reason: Too long: may not be more than 1024 bytes',
    'status.conditions[4].message: Too long: may not be more than 32768 bytes',
    'status.disruptionsAllowed: Invalid value: -1: must be greater than or equal to 0',
  ]);
});

it('the table of PodDisruptionBudgets shows the amounts', () => {
  expect(podDisruptionBudgetKind.shortNames).toEqual(['pdb']);
  expect(headings(podDisruptionBudgetKind).all).toBe(
    'NAME | MIN AVAILABLE | MAX UNAVAILABLE | ALLOWED DISRUPTIONS | AGE',
  );
  const metadata = { creationTimestamp: '2026-01-31T11:59:00Z' };
  const status = { ...none, disruptionsAllowed: 2 };
  expect(row(podDisruptionBudgetKind, { metadata, spec: { minAvailable: '50%' }, status })).toEqual([
    'a',
    '50%',
    'N/A',
    2,
    '60s',
  ]);
});
