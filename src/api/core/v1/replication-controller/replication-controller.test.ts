import { expect, it, test } from 'vitest';
import { fieldErrorText } from '../../../../machinery/field-error.ts';
import { created, headings, row, updated } from '../../../testing.ts';
import { replicationControllerKind } from './index.ts';

const app = { name: 'app', image: 'busybox:1.28' };
const labels = { app: 'x' };
const template = (more: object = {}) => ({ metadata: { labels }, spec: { containers: [app], ...more } });
const controller = (spec: object = {}) => ({ spec: { template: template(), ...spec } });

it('a new ReplicationController takes its selector and its labels from the template', () => {
  const { object, errors } = created(replicationControllerKind, { ...controller(), status: { replicas: 3 } });
  expect(errors).toEqual([]);
  expect(object.metadata).toMatchObject({ generation: 1, labels });
  expect(object.spec).toMatchObject({ replicas: 1, selector: labels, template: { spec: { restartPolicy: 'Always' } } });
  expect(object.status).toEqual({ replicas: 0 });
});

it('a ReplicationController keeps its own selector and labels', () => {
  const own = { own: 'y' };
  const body = { spec: { selector: own, template: { ...template(), metadata: { labels: { ...labels, ...own } } } } };
  const { object, errors } = created(replicationControllerKind, { ...body, metadata: { labels: own } });
  expect(errors).toEqual([]);
  expect([object.spec?.selector, object.metadata.labels]).toEqual([own, own]);
});

test.each<[string, object, unknown[]]>([
  ['no template', { template: undefined }, ['spec.selector: Required value', 'spec.template: Required value']],
  ['no labels', { template: { spec: { containers: [app] } } }, ['spec.selector: Required value']],
  [
    'a selector of other labels',
    { selector: { app: 'y' } },
    ['spec.template.metadata.labels: Invalid value: {"app":"x"}: `selector` does not match template `labels`'],
  ],
  [
    'negative numbers',
    { replicas: -1, minReadySeconds: -1 },
    [
      'spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0',
      'spec.replicas: Invalid value: -1: must be greater than or equal to 0',
    ],
  ],
  [
    'Pods that end',
    { template: template({ restartPolicy: 'Never', activeDeadlineSeconds: 5 }) },
    [
      'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
      'spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicationController is not Supported',
    ],
  ],
  [
    'invalid defer containers',
    { template: template({ deferContainers: [{ ...app, trigger: 'Odd', name: 'd' }] }) },
    [expect.stringMatching(/^spec\.template\.spec\.deferContainers\[0\]\.trigger: Unsupported value: "Odd"/)],
  ],
])('the rules for a ReplicationController with %s', (_, spec, errors) => {
  expect(created(replicationControllerKind, controller(spec)).errors).toEqual(errors);
});

const more = { metadata: { labels: { app: 'x', tier: 'web' } }, spec: { containers: [app] } };

test.each<[string, object, object, number]>([
  ['nothing', {}, {}, 1],
  ['the replicas', {}, { replicas: 3 }, 2],
  ['the selector', { template: more, selector: { app: 'x' } }, { template: more, selector: { tier: 'web' } }, 2],
])('an update of a ReplicationController may change %s', (_, from, to, generation) => {
  const { object, errors } = updated(replicationControllerKind, controller(from), controller(to));
  expect([object.metadata.generation, errors]).toEqual([generation, []]);
});

it('warnings are about the name of a new ReplicationController', () => {
  const { object } = created(replicationControllerKind, { ...controller(), metadata: { name: 'a.b' } });
  expect(replicationControllerKind.warnings?.(object)).toEqual([expect.stringContaining('a DNS label is recommended')]);
});

it('the status of a ReplicationController is validated like that of a ReplicaSet', () => {
  const { object } = created(replicationControllerKind, controller());
  const old = { ...object, metadata: { ...object.metadata, resourceVersion: '1' } };
  const { validate } = replicationControllerKind.subresources['status'] ?? {};
  const errors = (status: object) =>
    validate?.({ ...old, status: { replicas: 1, ...status } }, old).map(fieldErrorText);
  expect(errors({ readyReplicas: 1, availableReplicas: 1 })).toEqual([]);
  expect(errors({ fullyLabeledReplicas: 2, availableReplicas: 1 })).toEqual([
    'status.fullyLabeledReplicas: Invalid value: 2: cannot be greater than status.replicas',
    'status.availableReplicas: Invalid value: 1: cannot be greater than readyReplicas',
  ]);
});

it('the table of ReplicationControllers has the columns of v1.33', () => {
  expect(replicationControllerKind).toMatchObject({
    plural: 'replicationcontrollers',
    shortNames: ['rc'],
    categories: ['all'],
  });
  const narrow = 'NAME | DESIRED | CURRENT | READY | AGE';
  expect(headings(replicationControllerKind)).toEqual({ narrow, all: `${narrow} | CONTAINERS | IMAGES | SELECTOR` });
  const metadata = { creationTimestamp: '2026-01-31T11:59:00Z' };
  const status = { replicas: 2, readyReplicas: 1 };
  expect(row(replicationControllerKind, { ...controller({ replicas: 3 }), metadata, status })).toEqual([
    'a',
    3,
    2,
    1,
    '60s',
    'app',
    'busybox:1.28',
    'app=x',
  ]);
  const { object } = created(replicationControllerKind, controller());
  expect(replicationControllerKind.selectableFields?.(object)).toEqual({ 'status.replicas': '0' });
});
