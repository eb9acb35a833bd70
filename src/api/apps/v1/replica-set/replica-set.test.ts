import { expect, it, test } from 'vitest';
import { fieldErrorText } from '../../../../machinery/field-error.ts';
import type { ReplicaSet } from '../../../generated/types.ts';
import { created, headings, row, updated } from '../../../testing.ts';
import { replicaSetKind } from './index.ts';

const app = { name: 'app', image: 'busybox:1.28' };
const labels = { app: 'x' };
const template = (more: object = {}) => ({ metadata: { labels }, spec: { containers: [app], ...more } });
const selector = { matchLabels: labels };
const replicaSet = (spec: object = {}) => ({ spec: { selector, template: template(), ...spec } });
const MISMATCH =
  'spec.template.metadata.labels: Invalid value: {"app":"x"}: `selector` does not match template `labels`';

it('a new ReplicaSet gets its defaults and an empty status', () => {
  const { object, errors } = created(replicaSetKind, { ...replicaSet(), status: { replicas: 3, readyReplicas: 3 } });
  expect(errors).toEqual([]);
  expect(object.metadata).toMatchObject({ generation: 1 });
  expect(object.metadata.labels).toBeUndefined();
  expect(object.spec).toMatchObject({ replicas: 1, template: { spec: { restartPolicy: 'Always' } } });
  expect(object.status).toEqual({ replicas: 0 });
});

test.each<[string, object, unknown[]]>([
  ['no replicas', { replicas: 0 }, []],
  ['no selector', { selector: undefined }, ['spec.selector: Required value', MISMATCH]],
  [
    'an empty selector',
    { selector: {} },
    ['spec.selector: Invalid value: {}: empty selector is invalid for deployment'],
  ],
  ['a selector of other labels', { selector: { matchLabels: { app: 'y' } } }, [MISMATCH]],
  [
    'an invalid selector',
    { selector: { matchExpressions: [{ key: 'app', operator: 'Odd' }] } },
    [
      'spec.selector.matchExpressions[0].operator: Invalid value: "Odd": not a valid selector operator',
      'spec.selector: Invalid value: {"matchExpressions":[{"key":"app","operator":"Odd"}]}: invalid label selector',
    ],
  ],
  [
    'negative numbers',
    { replicas: -1, minReadySeconds: -1 },
    [
      'spec.replicas: Invalid value: -1: must be greater than or equal to 0',
      'spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0',
    ],
  ],
  [
    'Pods that end',
    { template: template({ restartPolicy: 'Never', activeDeadlineSeconds: 5 }) },
    [
      'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
      'spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported',
    ],
  ],
  [
    'no template',
    { template: undefined },
    [
      'spec.template.metadata.labels: Invalid value: {}: `selector` does not match template `labels`',
      'spec.template.spec.containers: Required value',
    ],
  ],
  [
    'invalid defer containers',
    { template: template({ deferContainers: [{ ...app, trigger: 'Odd', name: 'd' }] }) },
    [expect.stringMatching(/^spec\.template\.spec\.deferContainers\[0\]\.trigger: Unsupported value: "Odd"/)],
  ],
])('the rules for a ReplicaSet with %s', (_, spec, errors) => {
  expect(created(replicaSetKind, replicaSet(spec)).errors).toEqual(errors);
});

test.each<[string, object, number, string[]]>([
  ['nothing', {}, 1, []],
  ['the replicas', { replicas: 3 }, 2, []],
  ['the template', { template: template({ terminationGracePeriodSeconds: 3 }) }, 2, []],
  [
    'the selector',
    { selector: { matchExpressions: [{ key: 'app', operator: 'Exists' }] } },
    2,
    ['spec.selector: Invalid value: {"matchExpressions":[{"key":"app","operator":"Exists"}]}: field is immutable'],
  ],
])('an update of a ReplicaSet that changes %s counts the generation', (_, spec, generation, errors) => {
  const { object, errors: found } = updated(replicaSetKind, replicaSet(), replicaSet(spec));
  expect(object.metadata.generation).toBe(generation);
  expect(found).toEqual(errors);
});

it('warnings are about the name of a new ReplicaSet, and about a template of a new generation', () => {
  const nodeSelector = { 'beta.kubernetes.io/os': 'linux' };
  const spec = { template: template({ nodeSelector }) };
  const { object } = created(replicaSetKind, { ...replicaSet(spec), metadata: { name: 'a.b' } });
  const ofTemplate = [
    'spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead',
  ];
  expect(replicaSetKind.warnings?.(object)).toEqual([
    expect.stringMatching(/^metadata\.name: this is used in Pod names and hostnames, .*: \[.*must not contain dots\]$/),
    ...ofTemplate,
  ]);
  expect(replicaSetKind.warnings?.(object, object)).toEqual([]);
  const { object: changed } = updated(replicaSetKind, replicaSet(), replicaSet(spec));
  expect(replicaSetKind.warnings?.(changed, object)).toEqual(ofTemplate);
});

const withStatus = (status: object): ReplicaSet => {
  const { object } = created(replicaSetKind, replicaSet());
  const metadata = { ...object.metadata, resourceVersion: '1' };
  return { ...object, metadata, status: { replicas: 0, ...status } };
};

test.each<[string, object, string[]]>([
  ['counts all replicas', { replicas: 2, fullyLabeledReplicas: 2, readyReplicas: 2, availableReplicas: 1 }, []],
  [
    'has negative numbers',
    { replicas: -1, observedGeneration: -1 },
    [
      'status.replicas: Invalid value: -1: must be greater than or equal to 0',
      'status.observedGeneration: Invalid value: -1: must be greater than or equal to 0',
      'status.fullyLabeledReplicas: Invalid value: 0: cannot be greater than status.replicas',
      'status.readyReplicas: Invalid value: 0: cannot be greater than status.replicas',
      'status.availableReplicas: Invalid value: 0: cannot be greater than status.replicas',
    ],
  ],
  [
    'counts too many parts',
    { replicas: 1, fullyLabeledReplicas: 2, readyReplicas: 3, availableReplicas: 4 },
    [
      'status.fullyLabeledReplicas: Invalid value: 2: cannot be greater than status.replicas',
      'status.readyReplicas: Invalid value: 3: cannot be greater than status.replicas',
      'status.availableReplicas: Invalid value: 4: cannot be greater than status.replicas',
      'status.availableReplicas: Invalid value: 4: cannot be greater than readyReplicas',
    ],
  ],
])('the rules for a status of a ReplicaSet that %s', (_, status, errors) => {
  const old = withStatus({});
  const object = withStatus(status);
  expect(replicaSetKind.subresources['status']?.validate?.(object, old).map(fieldErrorText)).toEqual(errors);
});

it('an update of the status drops the number of terminating replicas, whose feature is disabled, unless it was set', () => {
  const { apply } = replicaSetKind.subresources['status'] ?? {};
  const sent = withStatus({ replicas: 1, terminatingReplicas: 1 });
  expect(apply?.(withStatus({}), sent, { now: 0 }).status).toEqual({ replicas: 1 });
  expect(apply?.(withStatus({ terminatingReplicas: 2 }), sent, { now: 0 }).status).toEqual(sent.status);
});

it('the table of ReplicaSets has the columns of v1.33', () => {
  expect(replicaSetKind).toMatchObject({ plural: 'replicasets', shortNames: ['rs'], categories: ['all'] });
  const narrow = 'NAME | DESIRED | CURRENT | READY | AGE';
  expect(headings(replicaSetKind)).toEqual({ narrow, all: `${narrow} | CONTAINERS | IMAGES | SELECTOR` });
  const metadata = { creationTimestamp: '2026-01-31T11:59:00Z' };
  const status = { replicas: 2, readyReplicas: 1 };
  expect(row(replicaSetKind, { ...replicaSet({ replicas: 3 }), metadata, status })).toEqual([
    'a',
    3,
    2,
    1,
    '60s',
    'app',
    'busybox:1.28',
    'app=x',
  ]);
  expect(replicaSetKind.selectableFields?.(withStatus({ replicas: 2 }))).toEqual({ 'status.replicas': '2' });
});
