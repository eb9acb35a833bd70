import { expect, it, test } from 'vitest';
import { fieldErrorText } from '../../../../machinery/field-error.ts';
import type { Job } from '../../../generated/types.ts';
import { created, headings, NOW, row, updated } from '../../../testing.ts';
import { jobKind } from './index.ts';

const app = { name: 'app', image: 'busybox:1.28' };
const template = (more: object = {}, metadata: object = {}) => ({
  metadata,
  spec: { containers: [app], restartPolicy: 'Never', ...more },
});
const metadata = { uid: 'u' };
const job = (spec: object = {}) => ({ metadata, spec: { template: template(), ...spec } });
const labels = {
  'controller-uid': 'u',
  'job-name': 'a',
  'batch.kubernetes.io/controller-uid': 'u',
  'batch.kubernetes.io/job-name': 'a',
};

it('a new Job gets its defaults, and its selector and labels are generated', () => {
  const { object, errors } = created(jobKind, { ...job(), status: { active: 1 } });
  expect(errors).toEqual([]);
  expect(object).toMatchObject({ metadata: { generation: 1, labels }, status: {} });
  expect(object.spec).toMatchObject({
    parallelism: 1,
    completions: 1,
    backoffLimit: 6,
    completionMode: 'NonIndexed',
    suspend: false,
    manualSelector: false,
    podReplacementPolicy: 'TerminatingOrFailed',
    selector: { matchLabels: { 'batch.kubernetes.io/controller-uid': 'u' } },
    template: { metadata: { labels }, spec: { dnsPolicy: 'ClusterFirst' } },
  });
});

it('a Job with parallelism only has no number of completions, and one with a limit for each index has no other', () => {
  expect(created(jobKind, job({ parallelism: 2 })).object.spec?.completions).toBeUndefined();
  const indexed = { completionMode: 'Indexed', completions: 2, backoffLimitPerIndex: 1 };
  expect(created(jobKind, job(indexed)).object.spec?.backoffLimit).toBe(2 ** 31 - 1);
});

it('the labels of a new Job are those of its template, unless it has its own', () => {
  const labeled = { template: template({}, { labels: { app: 'x' } }) };
  expect(created(jobKind, job(labeled)).object.metadata.labels).toEqual({ app: 'x', ...labels });
  const own = { ...job(labeled), metadata: { ...metadata, labels: { own: 'y' } } };
  expect(created(jobKind, own).object.metadata.labels).toEqual({ own: 'y' });
});

it('a manual selector must match the labels of the template', () => {
  const selector = { matchLabels: { app: 'x' } };
  expect(created(jobKind, job({ manualSelector: true })).errors).toEqual(['spec.selector: Required value']);
  const fitting = { manualSelector: true, selector, template: template({}, { labels: { app: 'x' } }) };
  expect(created(jobKind, job(fitting)).errors).toEqual([]);
  expect(created(jobKind, job({ manualSelector: true, selector })).errors).toEqual([
    'spec.template.metadata.labels: Invalid value: {}: `selector` does not match template `labels`',
  ]);
});

it('labels and selectors that contradict the generated ones are errors', () => {
  const wrong = { template: template({}, { labels: { 'job-name': 'b' } }) };
  expect(created(jobKind, job(wrong)).errors).toEqual([
    expect.stringMatching(/^spec\.template\.metadata\.labels\[job-name\]: Invalid value: \{.*\}: must be 'a'$/),
  ]);
  const selector = { matchLabels: { 'batch.kubernetes.io/controller-uid': 'v' } };
  expect(created(jobKind, job({ selector })).errors.map((text) => text.slice(text.lastIndexOf(':')))).toEqual([
    ': `selector` not auto-generated',
    ': `selector` does not match template `labels`',
  ]);
});

const rules = (...list: object[]) => ({ podFailurePolicy: { rules: list } });
const indexed = { completionMode: 'Indexed', completions: 5 };
const success = (rule: object) => ({ ...indexed, successPolicy: { rules: [rule] } });
const FIRST = 'spec.podFailurePolicy.rules[0]';
const SUCCESS = 'spec.successPolicy.rules[0]';

test.each<[string, object, unknown[]]>([
  [
    'a negative number',
    { parallelism: -1 },
    ['spec.parallelism: Invalid value: -1: must be greater than or equal to 0'],
  ],
  [
    'the restart policy Always',
    { template: template({ restartPolicy: 'Always' }) },
    ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
  ],
  [
    'an invalid template',
    { template: template({ containers: [{ ...app, name: 'Bad' }] }) },
    [expect.stringMatching(/^spec\.template\.spec\.containers\[0\]\.name: Invalid value: "Bad"/)],
  ],
  [
    'invalid defer containers',
    { template: template({ deferContainers: [{ ...app, trigger: 'Odd', name: 'd' }] }) },
    [expect.stringMatching(/^spec\.template\.spec\.deferContainers\[0\]\.trigger: Unsupported value: "Odd"/)],
  ],
  [
    'an unknown completion mode',
    { completionMode: 'Odd' },
    ['spec.completionMode: Unsupported value: "Odd": supported values: "NonIndexed", "Indexed"'],
  ],
  [
    'indexes without their number',
    { completionMode: 'Indexed', parallelism: 100_001 },
    [
      'spec.completions: Required value: when completion mode is Indexed',
      'spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 when completion mode is Indexed',
    ],
  ],
  [
    'limits of indexes without indexes',
    { backoffLimitPerIndex: 1, maxFailedIndexes: 1 },
    [
      'spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode',
      'spec.maxFailedIndexes: Invalid value: 1: requires indexed completion mode',
    ],
  ],
  [
    'a policy that contradicts the policy for failures',
    {
      podReplacementPolicy: 'TerminatingOrFailed',
      ...rules({ action: 'Ignore', onExitCodes: { operator: 'In', values: [1] } }),
    },
    ['spec.podReplacementPolicy: Unsupported value: "TerminatingOrFailed": supported values: "Failed"'],
  ],
  [
    'a manager without a domain',
    { managedBy: 'odd' },
    ['spec.managedBy: Invalid value: "odd": must be a domain-prefixed path (such as "acme.io/foo")'],
  ],
  [
    'a manager whose name has an invalid domain and an invalid path',
    { managedBy: 'Odd/a b' },
    [
      expect.stringMatching(/^spec\.managedBy: Invalid value: "Odd": a lowercase RFC 1123 subdomain must consist/),
      expect.stringMatching(
        /^spec\.managedBy: Invalid value: "a b": Invalid path \(regex used for validation is '\[A-Z/,
      ),
    ],
  ],
  [
    'a manager with a long name',
    { managedBy: `a.io/${'b'.repeat(59)}` },
    ['spec.managedBy: Too long: may not be more than 63 bytes'],
  ],
  [
    'an incomplete rule for failures',
    rules({ action: '' }),
    [
      `${FIRST}.action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]`,
      `${FIRST}: Invalid value: specifying one of OnExitCodes and OnPodConditions is required`,
    ],
  ],
  [
    'invalid exit codes',
    rules({ action: 'FailIndex', onExitCodes: { containerName: 'odd', operator: 'In', values: [3, 0, 3] } }),
    [
      `${FIRST}.action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set`,
      `${FIRST}.onExitCodes.containerName: Invalid value: "odd": must be one of the container or initContainer names in the pod template`,
      `${FIRST}.onExitCodes.values[1]: Invalid value: 0: must not be 0 for the In operator`,
      `${FIRST}.onExitCodes.values[2]: Duplicate value: 3`,
      `${FIRST}.onExitCodes.values: Invalid value: [3,0,3]: must be ordered`,
    ],
  ],
  [
    'an unknown status of a condition',
    rules({ action: 'Count', onPodConditions: [{ type: 'DisruptionTarget', status: 'Odd' }] }),
    [`${FIRST}.onPodConditions[0].status: Unsupported value: "Odd": supported values: "False", "True", "Unknown"`],
  ],
  [
    'a policy for success without indexes',
    { successPolicy: { rules: [] } },
    ['spec.successPolicy: Invalid value: {"rules":[]}: requires indexed completion mode'],
  ],
  [
    'a policy for success without rules',
    { ...indexed, successPolicy: { rules: [] } },
    [
      'spec.successPolicy.rules: Required value: at least one rules must be specified when the successPolicy is specified',
    ],
  ],
  ['a policy for success', success({ succeededIndexes: '0,2-4', succeededCount: 4 }), []],
  [
    'an empty rule for success',
    success({}),
    [`${SUCCESS}: Required value: at least one of succeededCount or succeededIndexes must be specified`],
  ],
  [
    'too many successes',
    success({ succeededIndexes: '1-2', succeededCount: 6 }),
    [
      `${SUCCESS}.succeededCount: Invalid value: 6: must be less than or equal to 5 (the number of specified completions)`,
      `${SUCCESS}.succeededCount: Invalid value: 6: must be less than or equal to 2 (the number of indexes in the specified succeededIndexes field)`,
    ],
  ],
  [
    'indexes out of order',
    success({ succeededIndexes: '2,1' }),
    [
      `${SUCCESS}.succeededIndexes: Invalid value: "2,1": error parsing succeededIndexes: non-increasing order, previous: 2, current: 1`,
    ],
  ],
  [
    'too large an index',
    success({ succeededIndexes: '1-5' }),
    [`${SUCCESS}.succeededIndexes: Invalid value: "1-5": error parsing succeededIndexes: too large index: "5"`],
  ],
])('the rules for a Job with %s', (_, spec, errors) => {
  expect(created(jobKind, job(spec)).errors).toEqual(errors);
});

const stored = (spec: object = {}) => {
  const { object } = created(jobKind, job(spec));
  return { metadata, spec: { ...object.spec } };
};
const change = (from: object, to: object) => {
  const old = stored(from);
  return updated(jobKind, old, { ...old, spec: { ...old.spec, ...to } });
};
const withLabels = (more: object, name = 'app') => template({ ...more, containers: [{ ...app, name }] }, { labels });
const affinity = {
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [{ matchExpressions: [{ key: 'a', operator: 'Exists' }] }],
    },
  },
};

test.each<[string, object, object, unknown[]]>([
  ['the parallelism', {}, { parallelism: 3, suspend: true, backoffLimit: 1 }, []],
  ['the completions', {}, { completions: 3 }, ['spec.completions: Invalid value: 3: field is immutable']],
  [
    'the completions of an indexed Job',
    { completionMode: 'Indexed', completions: 2 },
    { completions: 3 },
    ['spec.completions: Invalid value: 3: can only be modified in tandem with spec.parallelism'],
  ],
  [
    'the completions and the parallelism of an indexed Job',
    { completionMode: 'Indexed', completions: 2, parallelism: 2 },
    { completions: 3, parallelism: 3 },
    [],
  ],
  [
    'the template',
    {},
    { template: withLabels({ nodeSelector: { a: 'b' } }) },
    [expect.stringMatching(/^spec\.template: Invalid value: \{.*\}: field is immutable$/)],
  ],
  [
    'the scheduling of a suspended Job',
    { suspend: true },
    {
      suspend: false,
      template: withLabels({ nodeSelector: { a: 'b' }, affinity, tolerations: [{ operator: 'Exists' }] }),
    },
    [],
  ],
  [
    'the containers of a suspended Job',
    { suspend: true },
    { template: withLabels({}, 'other') },
    [expect.stringMatching(/^spec\.template: Invalid value: \{.*\}: field is immutable$/)],
  ],
  ['the manager', {}, { managedBy: 'a.b/c' }, ['spec.managedBy: Invalid value: "a.b/c": field is immutable']],
])('an update of a Job that changes %s', (_, from, to, errors) => {
  expect(change(from, to).errors).toEqual(errors);
});

it('an update of the spec of a Job increments its generation', () => {
  expect(change({}, {}).object.metadata.generation).toBe(1);
  expect(change({}, { parallelism: 2 }).object.metadata.generation).toBe(2);
});

it('the numbers in the status of a Job are not negative', () => {
  const old = created(jobKind, job()).object;
  old.metadata = { ...old.metadata, resourceVersion: '1' };
  const now: Job = { ...old, status: { active: -1, ready: -2 } };
  expect(jobKind.subresources['status']?.validate?.(now, old).map(fieldErrorText)).toEqual([
    'status.active: Invalid value: -1: must be greater than or equal to 0',
    'status.ready: Invalid value: -2: must be greater than or equal to 0',
  ]);
});

it('the longest hostname of an indexed Job must be valid, and a name that is no hostname causes a warning', () => {
  const name = 'a'.repeat(62);
  const long = { ...job({ completionMode: 'Indexed', completions: 11 }), metadata: { ...metadata, name } };
  expect(created(jobKind, long).errors).toEqual([
    `metadata.name: Invalid value: "${name}": will not able to create pod with invalid DNS label: ${name}-10`,
  ]);
  const { object } = created(jobKind, { ...job(), metadata: { ...metadata, name: 'a.b' } });
  expect(jobKind.warnings?.(object)).toEqual([expect.stringMatching(/^metadata\.name: this is used in Pod names/)]);
});

it('the table of Jobs has the columns of v1.33', () => {
  expect(headings(jobKind)).toEqual({
    narrow: 'NAME | STATUS | COMPLETIONS | DURATION | AGE',
    all: 'NAME | STATUS | COMPLETIONS | DURATION | AGE | CONTAINERS | IMAGES | SELECTOR',
  });
  const startTime = new Date(NOW - 90_000).toISOString();
  const shown = (spec: object, status: object) => row(jobKind, { ...job(spec), status });
  expect(
    shown({}, { succeeded: 1, startTime, conditions: [{ type: 'Complete', status: 'True' }] }).slice(1, 4),
  ).toEqual(['Complete', '1/1', '90s']);
  expect(shown({ parallelism: 3 }, {}).slice(1, 4)).toEqual(['Running', '0/1 of 3', '']);
  const selector = { matchLabels: { app: 'x' } };
  expect(shown({ selector }, {}).slice(5)).toEqual(['app', 'busybox:1.28', 'app=x']);
});
