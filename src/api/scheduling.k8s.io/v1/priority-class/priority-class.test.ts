import { describe, expect, it } from 'vitest';
import { created, headings, row, updated } from '../../../testing.ts';
import { priorityClassKind, systemPriorityClasses } from './index.ts';

const RESERVED =
  "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only.";

describe('a new PriorityClass', () => {
  it.each<[Record<string, unknown>, string[]]>([
    [{ value: 1000 }, []],
    [{ value: -5, preemptionPolicy: 'Never' }, []],
    [{ value: 1_000_000_000 }, []],
    [
      { value: 2_000_001_000, globalDefault: true, metadata: { name: 'system-node-critical' } },
      [`${RESERVED} error: globalDefault of system-node-critical PriorityClass must be false`],
    ],
    [{ value: 1_000_000_001 }, ['value: Forbidden: maximum allowed value of a user defined priority is 1000000000']],
    [
      { value: 1, preemptionPolicy: 'Sometimes' },
      ['preemptionPolicy: Unsupported value: "Sometimes": supported values: "PreemptLowerPriority", "Never"'],
    ],
    [
      { value: 1, metadata: { name: 'system-mine' } },
      [`${RESERVED} error: system-mine is not a known system priority class`],
    ],
    [
      { value: 1, metadata: { name: 'system-node-critical' } },
      [`${RESERVED} error: value of system-node-critical PriorityClass must be 2000001000`],
    ],
  ])('the errors of a new PriorityClass with %j are reported', (body, errors) => {
    expect(created(priorityClassKind, body).errors).toEqual(errors);
  });
  it('the PriorityClasses of the system are valid', () => {
    for (const { apiVersion: _a, kind: _k, ...body } of systemPriorityClasses)
      expect(created(priorityClassKind, { ...body }).errors).toEqual([]);
  });
});

it('an update of a PriorityClass may change the description, but not the value or the policy', () => {
  expect(updated(priorityClassKind, { value: 1 }, { value: 1, description: 'x', globalDefault: true }).errors).toEqual(
    [],
  );
  expect(updated(priorityClassKind, { value: 1 }, { value: 2, preemptionPolicy: 'Never' }).errors).toEqual([
    'value: Forbidden: may not be changed in an update.',
    'preemptionPolicy: Invalid value: "Never": field is immutable',
  ]);
});

it('the table of PriorityClasses shows value, default, age and policy', () => {
  expect(headings(priorityClassKind).narrow).toBe('NAME | VALUE | GLOBAL-DEFAULT | AGE | PREEMPTIONPOLICY');
  expect(row(priorityClassKind, { value: 7 })).toEqual(['a', 7, 'false', '<unknown>', 'PreemptLowerPriority']);
});
