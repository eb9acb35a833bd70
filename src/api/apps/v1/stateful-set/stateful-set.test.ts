import { expect, it, test } from 'vitest';
import { fieldErrorText } from '../../../../machinery/field-error.ts';
import { created, headings, row, updated } from '../../../testing.ts';
import { statefulSetKind } from './index.ts';

const app = { name: 'app', image: 'busybox:1.28' };
const labels = { app: 'x' };
const template = (more: object = {}, metadata: object = { labels }) => ({
  metadata,
  spec: { containers: [app], ...more },
});
const selector = { matchLabels: labels };
const statefulSet = (spec: object = {}) => ({ spec: { selector, template: template(), ...spec } });
const claim = (name: string, spec: object = {}) => ({ metadata: { name }, spec });

it('a new StatefulSet gets its defaults and an empty status', () => {
  const { object, errors } = created(statefulSetKind, { ...statefulSet(), status: { replicas: 3 } });
  expect(errors).toEqual([]);
  expect(object.metadata.generation).toBe(1);
  expect(object.spec).toMatchObject({
    replicas: 1,
    podManagementPolicy: 'OrderedReady',
    updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0 } },
    revisionHistoryLimit: 10,
    persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
    template: { spec: { dnsPolicy: 'ClusterFirst', restartPolicy: 'Always' } },
  });
  expect(object.status).toEqual({ replicas: 0, availableReplicas: 0 });
});

it('a strategy that is given gets only the defaults of its type', () => {
  const strategyOf = (updateStrategy: object) =>
    created(statefulSetKind, statefulSet({ updateStrategy })).object.spec?.updateStrategy;
  expect(strategyOf({ type: 'OnDelete' })).toEqual({ type: 'OnDelete' });
  expect(strategyOf({ type: 'RollingUpdate' })).toEqual({ type: 'RollingUpdate' });
  expect(strategyOf({ rollingUpdate: { maxUnavailable: 2 } })).toEqual({
    type: 'RollingUpdate',
    rollingUpdate: { partition: 0, maxUnavailable: 2 },
  });
});

it('the templates for claims get their type, the default mode and a status', () => {
  const { object, errors } = created(statefulSetKind, statefulSet({ volumeClaimTemplates: [claim('data')] }));
  expect(errors).toEqual([]);
  expect(object.spec?.volumeClaimTemplates).toEqual([
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'data' },
      spec: { volumeMode: 'Filesystem' },
      status: { phase: 'Pending' },
    },
  ]);
});

test.each<[string, object, unknown[]]>([
  [
    'unknown policies',
    {
      podManagementPolicy: 'Odd',
      updateStrategy: { type: 'Odd' },
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Keep', whenScaled: 'Delete' },
    },
    [
      `spec.podManagementPolicy: Invalid value: "Odd": must be 'OrderedReady' or 'Parallel'`,
      `spec.updateStrategy: Invalid value: {"type":"Odd"}: must be 'RollingUpdate' or 'OnDelete'`,
      'spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value: "Keep": supported values: "Retain", "Delete"',
    ],
  ],
  [
    'a partition without rolling updates',
    { updateStrategy: { type: 'OnDelete', rollingUpdate: { partition: 1 } } },
    [
      `spec.updateStrategy.rollingUpdate: Invalid value: {"partition":1}: only allowed for updateStrategy 'RollingUpdate'`,
    ],
  ],
  [
    'amounts of Pods that may be unavailable',
    { updateStrategy: { rollingUpdate: { maxUnavailable: '0%' } } },
    ['spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "0%": cannot be 0'],
  ],
  [
    'a percentage above 100%',
    { updateStrategy: { rollingUpdate: { maxUnavailable: '101%' } } },
    ['spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%'],
  ],
  [
    'negative numbers',
    {
      updateStrategy: { rollingUpdate: { partition: -1 } },
      replicas: -2,
      minReadySeconds: -3,
      ordinals: { start: -4 },
    },
    [
      'spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: must be greater than or equal to 0',
      'spec.replicas: Invalid value: -2: must be greater than or equal to 0',
      'spec.minReadySeconds: Invalid value: -3: must be greater than or equal to 0',
      'spec.ordinals.start: Invalid value: -4: must be greater than or equal to 0',
    ],
  ],
  [
    'an invalid name of a Service',
    { serviceName: 'a.b' },
    ['spec.serviceName: Invalid value: "a.b": must not contain dots'],
  ],
  [
    'no selector',
    { selector: undefined },
    [
      'spec.selector: Required value',
      'spec.template.metadata.labels: Invalid value: {"app":"x"}: `selector` does not match template `labels`',
    ],
  ],
  [
    'an empty selector',
    { selector: {} },
    ['spec.selector: Invalid value: {}: empty selector is invalid for statefulset'],
  ],
  [
    'Pods that end',
    { template: template({ restartPolicy: 'Never', activeDeadlineSeconds: 5 }) },
    [
      'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
      'spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in StatefulSet is not Supported',
    ],
  ],
  [
    'an invalid annotation',
    { template: template({}, { labels, annotations: { 'a b': '' } }) },
    [expect.stringMatching(/^spec\.template\.annotations: Invalid value: "a b": name part must consist/)],
  ],
  ['a container that only the Pods are checked for', { template: template({ containers: [{ name: 'Bad' }] }) }, []],
])('the rules for a StatefulSet with %s', (_, spec, errors) => {
  expect(created(statefulSetKind, statefulSet(spec)).errors).toEqual(errors);
});

it('the defer containers of a StatefulSet are validated, and may mount the volumes of its claims', () => {
  const mounts = { volumeMounts: [{ name: 'data', mountPath: '/data' }] };
  const deferContainers = [{ ...app, ...mounts, name: 'last' }];
  const given = { template: template({ deferContainers }) };
  expect(created(statefulSetKind, statefulSet(given)).errors).toEqual([
    'spec.template.spec.deferContainers[0].volumeMounts[0].name: Not found: "data"',
  ]);
  const volumeClaimTemplates = [claim('data')];
  expect(created(statefulSetKind, statefulSet({ ...given, volumeClaimTemplates })).errors).toEqual([]);
});

it('the name of a StatefulSet is a DNS label, because it is a part of the hostname of its Pods', () => {
  const { errors } = created(statefulSetKind, { ...statefulSet(), metadata: { name: 'a.b' } });
  expect(errors).toEqual(['metadata.name: Invalid value: "a.b": must not contain dots']);
});

const FORBIDDEN =
  "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

test.each<[string, object, object, number, string[]]>([
  ['nothing', {}, {}, 1, []],
  [
    'all fields that may change',
    {},
    {
      replicas: 3,
      ordinals: { start: 1 },
      template: template({ terminationGracePeriodSeconds: 3 }),
      updateStrategy: { type: 'OnDelete' },
      revisionHistoryLimit: 1,
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Delete' },
      minReadySeconds: 3,
    },
    2,
    [],
  ],
  ['the name of the Service', {}, { serviceName: 'web' }, 2, [FORBIDDEN]],
  ['nothing but keeps an invalid name of a Service', { serviceName: 'a.b' }, {}, 1, []],
  ['the order of Pods', {}, { podManagementPolicy: 'Parallel' }, 2, [FORBIDDEN]],
  [
    'the claims',
    { volumeClaimTemplates: [claim('data')] },
    { volumeClaimTemplates: [claim('data', { storageClassName: 'other' })] },
    2,
    [FORBIDDEN],
  ],
])('an update of a StatefulSet that changes %s', (_, from, to, generation, errors) => {
  const { object, errors: found } = updated(statefulSetKind, statefulSet(from), statefulSet({ ...from, ...to }));
  expect([object.metadata.generation, found]).toEqual([generation, errors]);
});

it('a StatefulSet warns about its template when its spec changes', () => {
  const spec = { template: template({ nodeSelector: { 'beta.kubernetes.io/os': 'linux' } }) };
  const { object } = created(statefulSetKind, statefulSet(spec));
  expect(statefulSetKind.warnings?.(object)).toEqual([
    'spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead',
  ]);
  expect(statefulSetKind.warnings?.(object, object)).toEqual([]);
});

it('a StatefulSet warns about sizes of its claims that are not whole bytes', () => {
  const volumeClaimTemplates = [claim('data', { resources: { requests: { storage: '1500m' } } })];
  const { object } = created(statefulSetKind, statefulSet({ volumeClaimTemplates }));
  const warning = 'resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer';
  expect(statefulSetKind.warnings?.(object)).toEqual([`spec.volumeClaimTemplates[0].${warning}`]);
  expect(statefulSetKind.warnings?.(object, object)).toEqual([`spec.volumeClaimTemplates[0].Spec.${warning}`]);
});

test.each<[string, object, string[]]>([
  [
    'equal numbers',
    { replicas: 2, readyReplicas: 2, currentReplicas: 2, updatedReplicas: 2, availableReplicas: 2 },
    [],
  ],
  [
    'negative numbers',
    { replicas: 0, observedGeneration: -1, collisionCount: 3, currentReplicas: -1 },
    [
      'status.currentReplicas: Invalid value: -1: must be greater than or equal to 0',
      'status.observedGeneration: Invalid value: -1: must be greater than or equal to 0',
    ],
  ],
  [
    'more Pods of a sort than there are',
    { replicas: 1, readyReplicas: 2, currentReplicas: 2, updatedReplicas: 2, availableReplicas: 3 },
    [
      'status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas',
      'status.currentReplicas: Invalid value: 2: cannot be greater than status.replicas',
      'status.updatedReplicas: Invalid value: 2: cannot be greater than status.replicas',
      'status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas',
      'status.availableReplicas: Invalid value: 3: cannot be greater than status.readyReplicas',
    ],
  ],
  [
    'fewer collisions',
    { replicas: 0, collisionCount: 1 },
    ['status.collisionCount: Invalid value: 1: cannot be decremented'],
  ],
])('the rules for the status of a StatefulSet with %s', (_, status, errors) => {
  const { object } = created(statefulSetKind, statefulSet());
  object.metadata = { ...object.metadata, resourceVersion: '1' };
  const old = { ...object, status: { replicas: 0, collisionCount: 2 } };
  const written = { ...object, status: { replicas: 0, collisionCount: 2, ...status } };
  expect(statefulSetKind.subresources['status']?.validate?.(written, old).map(fieldErrorText)).toEqual(errors);
});

it('the table of StatefulSets has the columns of v1.33', () => {
  expect([statefulSetKind.shortNames, statefulSetKind.categories]).toEqual([['sts'], ['all']]);
  expect(headings(statefulSetKind)).toEqual({
    narrow: 'NAME | READY | AGE',
    all: 'NAME | READY | AGE | CONTAINERS | IMAGES',
  });
  const metadata = { creationTimestamp: '2026-01-31T11:59:00Z' };
  const status = { replicas: 3, readyReplicas: 1 };
  const cells = ['a', '1/3', '60s', 'app', 'busybox:1.28'];
  expect(row(statefulSetKind, { metadata, ...statefulSet({ replicas: 3 }), status })).toEqual(cells);
});
