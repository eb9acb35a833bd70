import { expect, it } from 'vitest';
import { fieldErrorText } from '../../../../../machinery/field-error.ts';
import type { NodeSelectorTerm, PodSpec } from '../../../../generated/types.ts';
import { defaulted, podOf } from '../pod-fixtures.ts';
import { preparePodForCreate } from '../strategy.ts';
import { validatePodUpdate } from './validate-update.ts';
import { validatePodCreate } from './validation.ts';

const errorsOf = (from: Partial<PodSpec>, to: Partial<PodSpec>): string[] => {
  const old = defaulted(podOf(from));
  old.metadata.resourceVersion = '1';
  preparePodForCreate(old, { now: 0 });
  const pod = structuredClone(old);
  Object.assign(pod.spec ?? {}, to);
  return validatePodUpdate(pod, old).map(fieldErrorText);
};
const on = (...nodeSelectorTerms: NodeSelectorTerm[]): Partial<PodSpec> => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
});
const term = (...keys: string[]): NodeSelectorTerm => ({
  matchExpressions: keys.map((key) => ({ key, operator: 'Exists' })),
});
const named = (name: string): NodeSelectorTerm => ({
  matchFields: [{ key: 'metadata.name', operator: 'In', values: [name] }],
});
const TERMS = 'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms';
const CHANGED = 'only additions are allowed (no mutations or deletions)';
const COUNT = 'no additions/deletions to non-empty NodeSelectorTerms list are allowed';

it.each<[string, Partial<PodSpec>, Partial<PodSpec>, string | undefined]>([
  ['set node affinity', {}, on(term('a')), undefined],
  ['keep a term', on(term('a')), on(term('a')), undefined],
  ['extend a term by an expression', on(term('a')), on(term('a', 'b')), undefined],
  ['extend a term by a field', on(term('a')), on({ ...term('a'), ...named('n') }), undefined],
  ['change an expression', on(term('a')), on(term('b')), `${TERMS}[0]`],
  ['remove an expression', on(term('a', 'b')), on(term('a')), `${TERMS}[0]`],
  ['change a field', on(named('n')), on(named('m')), `${TERMS}[0]`],
  ['change the second term', on(term('a'), term('b')), on(term('a'), term('c')), `${TERMS}[1]`],
  ['extend an empty term, which matches no node', on({}, term('b')), on(term('a'), term('b')), `${TERMS}[0]`],
  ['keep an empty term', on({}, term('b')), on({}, term('b', 'c')), undefined],
  ['add a term', on(term('a')), on(term('a'), term('b')), TERMS],
  ['remove all terms', on(term('a')), { affinity: undefined }, TERMS],
])('the update of a Pod with scheduling gates may narrow the selection of nodes: it would %s', (...row) => {
  const [, from, to, path] = row;
  const errors = errorsOf({ schedulingGates: [{ name: 'g' }], ...from }, to);
  const text = path === TERMS ? COUNT : CHANGED;
  expect(errors).toEqual(
    path === undefined ? [] : [expect.stringMatching(new RegExp(`^${path.replace(/[[\].]/g, '\\$&')}: .*: `))],
  );
  if (path !== undefined) expect(errors[0]).toContain(text);
});

it('the update of a Pod with scheduling gates may add to its node selector, but not change it', () => {
  const gated = { schedulingGates: [{ name: 'g' }], nodeSelector: { a: '1' } };
  expect(errorsOf(gated, { nodeSelector: { a: '1', b: '2' } })).toEqual([]);
  expect(errorsOf(gated, { nodeSelector: { a: '2' } })).toHaveLength(1);
  expect(errorsOf(gated, { nodeSelector: { b: '2' } })).toHaveLength(1);
  expect(errorsOf({ nodeSelector: { a: '1' } }, { nodeSelector: { a: '1', b: '2' } })).toHaveLength(1);
});

const RANGE = 'must be between 0 and 2147483647, inclusive';

it.each<[number, number, string[]]>([
  [9, 9, []],
  [2 ** 31 - 1, 2 ** 31 - 1, []],
  [9, 10, ['spec.activeDeadlineSeconds: Invalid value: 10: must be less than or equal to previous value']],
])('the update of the deadline of a Pod from %i s to %i s is checked', (from, to, expected) => {
  expect(errorsOf({ activeDeadlineSeconds: from }, { activeDeadlineSeconds: to })).toEqual(expected);
});

it.each([-1, 2 ** 31])('a deadline of %i s is out of the range that an update may set', (activeDeadlineSeconds) => {
  expect(errorsOf({}, { activeDeadlineSeconds })).toContain(
    `spec.activeDeadlineSeconds: Invalid value: ${activeDeadlineSeconds}: ${RANGE}`,
  );
  expect(errorsOf({}, { activeDeadlineSeconds: 0 })).not.toContain(
    `spec.activeDeadlineSeconds: Invalid value: 0: ${RANGE}`,
  );
});

it('an update may set a grace period to 1 only if it was negative', () => {
  const to = { terminationGracePeriodSeconds: 1 };
  expect(errorsOf({ terminationGracePeriodSeconds: -1 }, to)).toEqual([]);
  expect(errorsOf({ terminationGracePeriodSeconds: 0 }, to)).toHaveLength(1);
});

it('a new Pod may have a node or scheduling gates, but not both', () => {
  const errors = (spec: Partial<PodSpec>) => validatePodCreate(defaulted(podOf(spec))).map(fieldErrorText);
  const schedulingGates = [{ name: 'g' }];
  expect([errors({ nodeName: 'n' }), errors({ schedulingGates })]).toEqual([[], []]);
  expect(errors({ nodeName: 'n', schedulingGates })).toEqual([
    'spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared',
  ]);
});
