import { describe, expect, it } from 'vitest';
import { fieldErrorText } from '../../../../../machinery/field-error.ts';
import type { Affinity, PodSpec, TopologySpreadConstraint } from '../../../../generated/types.ts';
import {
  validateAffinitySize,
  validateNodeSelectorLabels,
  validatePlacement,
  validateTolerations,
} from './validate-placement.ts';

const errorsOf = (spec: Partial<PodSpec>): string[] =>
  validatePlacement({ containers: [], ...spec }).map(fieldErrorText);
const QUALIFIED = "name part must consist of alphanumeric characters, '-', '_' or '.'";
const LABEL_VALUE = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.'";
/** Returns a matcher for each text: the error contains `path`, immediately followed by the text. */
const beginning = (path: string, texts: readonly string[]) => texts.map((text) => expect.stringContaining(path + text));

describe('the tolerations of a Pod', () => {
  it.each<[object, ...string[]]>([
    [{ operator: 'Exists' }],
    [{ key: 'a', value: 'x', effect: 'PreferNoSchedule' }],
    [{ key: 'a', operator: 'Equal', effect: 'NoExecute', tolerationSeconds: 0 }],
    [{ key: 'a b', operator: 'Exists' }, `.key: Invalid value: "a b": ${QUALIFIED}`],
    [{ key: 'a', value: 'x y' }, `.operator: Invalid value: "x y": ${LABEL_VALUE}`],
    [{ key: 'a', operator: 'Equal', value: 'x y' }, `.operator: Invalid value: "x y": ${LABEL_VALUE}`],
  ])('the errors in the toleration %j are reported', (toleration, ...errors) => {
    expect(validateTolerations([toleration], 'spec.tolerations').map(fieldErrorText)).toEqual(
      beginning('spec.tolerations[0]', errors),
    );
  });
});

it('the labels of a node selector must be valid', () => {
  expect(validateNodeSelectorLabels({ a: 'x', 'a b': 'x y' }, 'spec.nodeSelector').map(fieldErrorText)).toEqual(
    beginning('spec.nodeSelector', [`: Invalid value: "a b": ${QUALIFIED}`, `: Invalid value: "x y": ${LABEL_VALUE}`]),
  );
});

it('a readiness gate must name a valid type of condition', () => {
  expect(errorsOf({ readinessGates: [{ conditionType: 'example.com/ready' }, { conditionType: 'a b' }] })).toEqual(
    beginning('spec.readinessGates[1].conditionType', [`: Invalid value: "a b": ${QUALIFIED}`]),
  );
});

describe('the node affinity of a Pod', () => {
  const IN = "must be specified when `operator` is 'In' or 'NotIn'";
  const EXISTS = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
  const NUMBER = "must be specified single value when `operator` is 'Lt' or 'Gt'";
  const FIELD = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
  const required = (requirement: object, list: string): Affinity => ({
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ [list]: [requirement] }] },
    },
  });
  const preferred = (weight: number, requirement: object): Affinity => ({
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight, preference: { matchExpressions: [requirement as { key: string; operator: string }] } },
      ],
    },
  });
  const REQUIRED = 'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]';
  const PREFERRED = 'spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]';

  it.each<[object, ...string[]]>([
    [{ key: 'a', operator: 'In', values: ['x', 'y'] }],
    [{ key: 'a', operator: 'NotIn', values: [] }, `.values: Required value: ${IN}`],
    [{ key: 'a', operator: 'Exists' }],
    [{ key: 'a', operator: 'DoesNotExist' }],
    [{ key: 'a', operator: 'Exists', values: ['x'] }, `.values: Forbidden: ${EXISTS}`],
    [{ key: 'a', operator: 'DoesNotExist', values: ['x'] }, `.values: Forbidden: ${EXISTS}`],
    [{ key: 'a', operator: 'Gt', values: ['1'] }],
    [{ key: 'a', operator: 'Lt', values: ['1'] }],
    [{ key: 'a', operator: 'Gt', values: ['1', '2'] }, `.values: Required value: ${NUMBER}`],
    [{ key: 'a', operator: 'Lt' }, `.values: Required value: ${NUMBER}`],
    [{ key: 'a b', operator: 'Exists' }, `.key: Invalid value: "a b": ${QUALIFIED}`],
    [{ key: 'a', operator: 'In', values: ['x', 'x y'] }, `.values[1]: Invalid value: "x y": ${LABEL_VALUE}`],
  ])('the errors in the requirement %j on labels are reported', (requirement, ...errors) => {
    expect(errorsOf({ affinity: required(requirement, 'matchExpressions') })).toEqual(
      beginning(`${REQUIRED}.matchExpressions[0]`, errors),
    );
  });
  it.each<[object, ...string[]]>([
    [{ key: 'metadata.name', operator: 'In', values: ['n'] }],
    [{ key: 'metadata.name', operator: 'NotIn', values: ['n'] }],
    [{ key: 'metadata.name', operator: 'Exists' }, '.operator: Invalid value: "Exists": not a valid selector operator'],
    [{ key: 'metadata.name', operator: 'In', values: ['n', 'm'] }, `.values: Required value: ${FIELD}`],
    [{ key: 'metadata.name', operator: 'NotIn' }, `.values: Required value: ${FIELD}`],
    [
      { key: 'metadata.name', operator: 'In', values: ['N'] },
      '.values[0]: Invalid value: "N": a lowercase RFC 1123 subdomain must',
    ],
    [{ key: 'spec.x', operator: 'In', values: ['N'] }, '.key: Invalid value: "spec.x": not a valid field selector key'],
  ])('the errors in the requirement %j on fields are reported', (requirement, ...errors) => {
    expect(errorsOf({ affinity: required(requirement, 'matchFields') })).toEqual(
      beginning(`${REQUIRED}.matchFields[0]`, errors),
    );
  });
  it.each<[number, object, ...string[]]>([
    [1, { key: 'a', operator: 'In', values: ['x y'] }],
    [100, { key: 'a', operator: 'Exists' }],
    [0, { key: 'a', operator: 'Exists' }, '.weight: Invalid value: 0: must be in the range 1-100'],
    [101, { key: 'a', operator: 'Exists' }, '.weight: Invalid value: 101: must be in the range 1-100'],
    [1, { key: 'a', operator: 'In' }, `.preference.matchExpressions[0].values: Required value: ${IN}`],
  ])(
    'the errors in a preference with weight %i and the requirement %j are reported',
    (weight, requirement, ...errors) => {
      expect(errorsOf({ affinity: preferred(weight, requirement) })).toEqual(beginning(PREFERRED, errors));
    },
  );
});

describe('the affinity of a Pod to other Pods', () => {
  const labelSelector = { matchLabels: { a: 'x' } };
  const invalidSelector = { matchExpressions: [{ key: 'a', operator: 'Is' }] };
  const NO_SELECTOR = 'Forbidden: must not be specified when labelSelector is not set';
  it.each(['podAffinity', 'podAntiAffinity'] as const)('the size of the required terms of %s is limited', (kind) => {
    const errors = (count: number, more: object = {}) => {
      const terms = Array.from({ length: count }, () => ({ topologyKey: 'zone', labelSelector, ...more }));
      const affinity = { [kind]: { requiredDuringSchedulingIgnoredDuringExecution: terms } };
      return validateAffinitySize({ containers: [], affinity }).map(fieldErrorText);
    };
    const tooLarge = (size: number) => [
      `spec.affinity.${kind}.requiredDuringSchedulingIgnoredDuringExecution: Invalid value: ${size}: ` +
        'must have at most 1000 terms, namespaces, requirements and values together',
    ];
    expect(errors(500)).toEqual([]);
    expect(errors(501)).toEqual(tooLarge(1002));
    expect(
      errors(1, { labelSelector: { matchExpressions: [{ key: 'a', operator: 'In', values: Array(1000) }] } }),
    ).toEqual(tooLarge(1002));
    expect(errors(100, { namespaces: Array(9) })).toEqual(tooLarge(1100));
    const keys = Array.from({ length: 500 }, (_, index) => `k${index}`);
    expect(errors(1, { matchLabelKeys: keys })).toEqual(tooLarge(1002));
    expect(errors(1, { mismatchLabelKeys: keys })).toEqual(tooLarge(1002));
    expect(errors(100, { namespaceSelector: { matchExpressions: Array(9).fill({ key: 'a' }) } })).toEqual(
      tooLarge(1100),
    );
  });

  it.each<[object, ...string[]]>([
    [{ topologyKey: 'zone', labelSelector, namespaces: ['a'], matchLabelKeys: ['k'], mismatchLabelKeys: ['l'] }],
    [
      { labelSelector },
      '.topologyKey: Required value: can not be empty',
      '.topologyKey: Invalid value: "": name part must be non-empty',
      `.topologyKey: Invalid value: "": ${QUALIFIED}`,
    ],
    [{ topologyKey: 'a b' }, `.topologyKey: Invalid value: "a b": ${QUALIFIED}`],
    [
      { topologyKey: 'zone', labelSelector: invalidSelector },
      '.labelSelector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator',
    ],
    [
      { topologyKey: 'zone', namespaceSelector: invalidSelector },
      '.namespaceSelector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator',
    ],
    [
      { topologyKey: 'zone', namespaces: ['a', 'B'] },
      '.namespace: Invalid value: "B": a lowercase RFC 1123 label must',
    ],
    [{ topologyKey: 'zone', matchLabelKeys: ['k'] }, `.matchLabelKeys: ${NO_SELECTOR}`],
    [{ topologyKey: 'zone', mismatchLabelKeys: ['k'] }, `.mismatchLabelKeys: ${NO_SELECTOR}`],
    [{ topologyKey: 'zone', matchLabelKeys: [], mismatchLabelKeys: [] }],
    [
      { topologyKey: 'zone', labelSelector, matchLabelKeys: ['k', 'a b'] },
      `.matchLabelKeys[1]: Invalid value: "a b": ${QUALIFIED}`,
    ],
    [
      { topologyKey: 'zone', labelSelector, mismatchLabelKeys: ['a b'] },
      `.mismatchLabelKeys[0]: Invalid value: "a b": ${QUALIFIED}`,
    ],
    [
      { topologyKey: 'zone', labelSelector, matchLabelKeys: ['j', 'k'], mismatchLabelKeys: ['k'] },
      '.matchLabelKeys[1]: Invalid value: "k": exists in both matchLabelKeys and mismatchLabelKeys',
    ],
  ])('the errors in the term %j are reported in every list of terms', (given, ...errors) => {
    const term = given as { topologyKey: string };
    for (const kind of ['podAffinity', 'podAntiAffinity'] as const) {
      const required = { requiredDuringSchedulingIgnoredDuringExecution: [term] };
      expect(errorsOf({ affinity: { [kind]: required } })).toEqual(
        beginning(`spec.affinity.${kind}.requiredDuringSchedulingIgnoredDuringExecution[0]`, errors),
      );
      const preferred = { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: term }] };
      expect(errorsOf({ affinity: { [kind]: preferred } })).toEqual(
        beginning(`spec.affinity.${kind}.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm`, errors),
      );
    }
  });
});

describe('the topology spread constraints of a Pod', () => {
  const constraint = (more: object = {}): TopologySpreadConstraint => ({
    maxSkew: 1,
    topologyKey: 'zone',
    whenUnsatisfiable: 'DoNotSchedule',
    ...more,
  });
  const labelSelector = { matchLabels: { a: 'x' } };
  it.each<[object, ...string[]]>([
    [{ minDomains: 1, nodeAffinityPolicy: 'Honor', nodeTaintsPolicy: 'Ignore', labelSelector, matchLabelKeys: ['k'] }],
    [{ whenUnsatisfiable: 'ScheduleAnyway' }],
    [{ minDomains: 0 }, '.minDomains: Invalid value: 0: must be greater than zero'],
    [
      { minDomains: 1, whenUnsatisfiable: 'ScheduleAnyway' },
      '.minDomains: Invalid value: 1: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway',
    ],
    [
      { nodeAffinityPolicy: 'x', nodeTaintsPolicy: 'y' },
      '.nodeAffinityPolicy: Unsupported value: "x": supported values: "Honor", "Ignore"',
      '.nodeTaintsPolicy: Unsupported value: "y": supported values: "Honor", "Ignore"',
    ],
    [{ matchLabelKeys: ['k'] }, '.matchLabelKeys: Forbidden: must not be specified when labelSelector is not set'],
    [
      { labelSelector: { matchExpressions: [{ key: 'a', operator: 'Is' }] } },
      '.labelSelector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator',
    ],
  ])('the errors in the constraint with %j are reported', (more, ...errors) => {
    expect(errorsOf({ topologySpreadConstraints: [constraint(more)] })).toEqual(
      beginning('spec.topologySpreadConstraints[0]', errors),
    );
  });
  it('all equal constraints except the last one are reported as duplicates', () => {
    const other = constraint({ whenUnsatisfiable: 'ScheduleAnyway' });
    expect(errorsOf({ topologySpreadConstraints: [constraint(), other, constraint({ maxSkew: 2 })] })).toEqual([
      'spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "{zone, DoNotSchedule}"',
    ]);
  });
});
