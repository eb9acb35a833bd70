import { expect, it, test } from 'vitest';
import { fieldErrorText } from '../../../../machinery/field-error.ts';
import type { Deployment } from '../../../generated/types.ts';
import { created, headings, row, updated } from '../../../testing.ts';
import { deploymentKind } from './index.ts';

const app = { name: 'app', image: 'busybox:1.28' };
const labels = { app: 'x' };
const template = (more: object = {}) => ({ metadata: { labels }, spec: { containers: [app], ...more } });
const selector = { matchLabels: labels };
const deployment = (spec: object = {}) => ({ spec: { selector, template: template(), ...spec } });
const rolling = (rollingUpdate: object) => ({ strategy: { type: 'RollingUpdate', rollingUpdate } });
const MISMATCH =
  'spec.template.metadata.labels: Invalid value: {"app":"x"}: `selector` does not match template `labels`';

it('a new Deployment gets its defaults and an empty status', () => {
  const { object, errors } = created(deploymentKind, { ...deployment(), status: { replicas: 3 } });
  expect(errors).toEqual([]);
  expect(object.metadata).toMatchObject({ generation: 1 });
  expect(object.spec).toMatchObject({
    replicas: 1,
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '25%', maxSurge: '25%' } },
    revisionHistoryLimit: 10,
    progressDeadlineSeconds: 600,
    template: { spec: { restartPolicy: 'Always', dnsPolicy: 'ClusterFirst' } },
  });
  expect(object.status).toEqual({});
});

it('a Deployment that replaces all Pods at once has no default amounts', () => {
  const { object } = created(deploymentKind, deployment({ strategy: { type: 'Recreate' } }));
  expect(object.spec?.strategy).toEqual({ type: 'Recreate' });
});

const ROLLING = 'spec.strategy.rollingUpdate';

test.each<[string, object, unknown[]]>([
  ['no selector', { selector: undefined }, ['spec.selector: Required value', MISMATCH]],
  [
    'an empty selector',
    { selector: {} },
    ['spec.selector: Invalid value: {}: empty selector is invalid for deployment'],
  ],
  ['a selector of other labels', { selector: { matchLabels: { app: 'y' } } }, [MISMATCH]],
  [
    'an invalid selector',
    { selector: { matchLabels: { app: '-' } } },
    [
      expect.stringMatching(/^spec\.selector\.matchLabels: Invalid value: "-": a valid label must be/),
      'spec.selector: Invalid value: {"matchLabels":{"app":"-"}}: invalid label selector',
    ],
  ],
  [
    'Pods that end',
    { template: template({ restartPolicy: 'OnFailure', activeDeadlineSeconds: 5 }) },
    [
      'spec.template.spec.restartPolicy: Unsupported value: "OnFailure": supported values: "Always"',
      'spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported',
    ],
  ],
  [
    'invalid defer containers',
    { template: template({ deferContainers: [{ ...app, trigger: 'Odd', name: 'd' }] }) },
    [expect.stringMatching(/^spec\.template\.spec\.deferContainers\[0\]\.trigger: Unsupported value: "Odd"/)],
  ],
  [
    'negative numbers',
    { replicas: -1, minReadySeconds: -2, revisionHistoryLimit: -1, progressDeadlineSeconds: -1 },
    [
      'spec.replicas: Invalid value: -1: must be greater than or equal to 0',
      'spec.minReadySeconds: Invalid value: -2: must be greater than or equal to 0',
      'spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0',
      'spec.progressDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0',
    ],
  ],
  [
    'a deadline before a Pod can be available',
    { minReadySeconds: 600 },
    ['spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds'],
  ],
  [
    'an unknown strategy',
    { strategy: { type: 'Odd' } },
    ['spec.strategy: Unsupported value: {"type":"Odd"}: supported values: "Recreate", "RollingUpdate"'],
  ],
  [
    'amounts for the strategy Recreate',
    { strategy: { type: 'Recreate', rollingUpdate: {} } },
    [`${ROLLING}: Forbidden: may not be specified when strategy \`type\` is 'Recreate'`],
  ],
  ['only a surge', rolling({ maxUnavailable: 0, maxSurge: 1 }), []],
  ['more than twice the replicas', rolling({ maxUnavailable: '100%', maxSurge: '200%' }), []],
  [
    'neither a surge nor unavailable Pods',
    rolling({ maxUnavailable: '0%', maxSurge: 0 }),
    [`${ROLLING}.maxUnavailable: Invalid value: "0%": may not be 0 when \`maxSurge\` is 0`],
  ],
  [
    'invalid amounts',
    rolling({ maxUnavailable: -1, maxSurge: 'some' }),
    [
      `${ROLLING}.maxUnavailable: Invalid value: -1: must be greater than or equal to 0`,
      expect.stringMatching(/maxSurge: Invalid value: "some": a valid percent string must be a numeric string/),
    ],
  ],
  [
    'too large a share',
    rolling({ maxUnavailable: '101%' }),
    [`${ROLLING}.maxUnavailable: Invalid value: "101%": must not be greater than 100%`],
  ],
])('the rules for a Deployment with %s', (_, spec, errors) => {
  expect(created(deploymentKind, deployment(spec)).errors).toEqual(errors);
});

test.each<[string, object, number, string[]]>([
  ['nothing', deployment(), 1, []],
  ['the replicas', deployment({ replicas: 3 }), 2, []],
  ['the template', deployment({ template: template({ terminationGracePeriodSeconds: 3 }) }), 2, []],
  ['the labels', { ...deployment(), metadata: { labels } }, 1, []],
  ['the annotations', { ...deployment(), metadata: { annotations: { a: 'b' } } }, 2, []],
  [
    'the selector',
    deployment({ selector: { matchExpressions: [{ key: 'app', operator: 'Exists' }] } }),
    2,
    ['spec.selector: Invalid value: {"matchExpressions":[{"key":"app","operator":"Exists"}]}: field is immutable'],
  ],
])('an update of a Deployment that changes %s counts the generation', (_, to, generation, errors) => {
  const { object, errors: found } = updated(deploymentKind, deployment(), { ...to });
  expect(object.metadata.generation).toBe(generation);
  expect(found).toEqual(errors);
});

const stored = (status: object, metadata: object = {}): Deployment => {
  const { object } = created(deploymentKind, { ...deployment(), metadata });
  return { ...object, metadata: { ...object.metadata, resourceVersion: '1' }, status };
};

test.each<[string, object, string[]]>([
  [
    'counts all Pods',
    { replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 1, collisionCount: 3 },
    [],
  ],
  [
    'has negative numbers',
    { observedGeneration: -1, unavailableReplicas: -1, collisionCount: -1 },
    [
      'status.observedGeneration: Invalid value: -1: must be greater than or equal to 0',
      'status.unavailableReplicas: Invalid value: -1: must be greater than or equal to 0',
      'status.collisionCount: Invalid value: -1: must be greater than or equal to 0',
      'status.collisionCount: Invalid value: -1: cannot be decremented',
    ],
  ],
  [
    'counts too many parts',
    { replicas: 1, updatedReplicas: 2, readyReplicas: 3, availableReplicas: 4, collisionCount: 2 },
    [
      'status.updatedReplicas: Invalid value: 2: cannot be greater than status.replicas',
      'status.readyReplicas: Invalid value: 3: cannot be greater than status.replicas',
      'status.availableReplicas: Invalid value: 4: cannot be greater than status.replicas',
      'status.availableReplicas: Invalid value: 4: cannot be greater than readyReplicas',
    ],
  ],
])('the rules for a status of a Deployment that %s', (_, status, errors) => {
  const old = stored({ collisionCount: 2 });
  const { validate } = deploymentKind.subresources['status'] ?? {};
  expect(validate?.(stored(status), old).map(fieldErrorText)).toEqual(errors);
});

it('an update of the status of a Deployment keeps the spec and the labels', () => {
  const { apply } = deploymentKind.subresources['status'] ?? {};
  const sent = stored({ replicas: 1, terminatingReplicas: 1 }, { labels: { own: 'y' }, annotations: { a: 'b' } });
  sent.spec = { ...sent.spec, replicas: 9 } as NonNullable<Deployment['spec']>;
  const result = apply?.(stored({}, { labels }), sent, { now: 0 });
  expect(result).toMatchObject({ metadata: { labels, annotations: { a: 'b' } }, spec: { replicas: 1 } });
  expect(result?.status).toEqual({ replicas: 1 });
  expect(apply?.(stored({}), sent, { now: 0 }).metadata.labels).toBeUndefined();
});

it('the table of Deployments has the columns of v1.33', () => {
  expect(deploymentKind).toMatchObject({ plural: 'deployments', shortNames: ['deploy'], categories: ['all'] });
  const narrow = 'NAME | READY | UP-TO-DATE | AVAILABLE | AGE';
  expect(headings(deploymentKind)).toEqual({ narrow, all: `${narrow} | CONTAINERS | IMAGES | SELECTOR` });
  const metadata = { creationTimestamp: '2026-01-31T11:59:00Z' };
  const status = { replicas: 3, updatedReplicas: 3, readyReplicas: 2, availableReplicas: 1 };
  expect(row(deploymentKind, { ...deployment({ replicas: 3 }), metadata, status })).toEqual([
    'a',
    '2/3',
    3,
    1,
    '60s',
    'app',
    'busybox:1.28',
    'app=x',
  ]);
});
