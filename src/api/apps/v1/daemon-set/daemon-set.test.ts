import { expect, it, test } from 'vitest';
import { fieldErrorText } from '../../../../machinery/field-error.ts';
import type { DaemonSet } from '../../../generated/types.ts';
import { created, headings, NOW, row, updated } from '../../../testing.ts';
import { daemonSetKind, TEMPLATE_GENERATION } from './index.ts';

const app = { name: 'app', image: 'busybox:1.28' };
const labels = { app: 'x' };
const template = (more: object = {}) => ({ metadata: { labels }, spec: { containers: [app], ...more } });
const selector = { matchLabels: labels };
const daemonSet = (spec: object = {}) => ({ spec: { selector, template: template(), ...spec } });
const rolling = (rollingUpdate: object) => ({ updateStrategy: { type: 'RollingUpdate', rollingUpdate } });

it('a new DaemonSet gets its defaults and an empty status', () => {
  const { object, errors } = created(daemonSetKind, { ...daemonSet(), status: { numberReady: 3 } });
  expect(errors).toEqual([]);
  expect(object.metadata).toMatchObject({ generation: 1, annotations: { [TEMPLATE_GENERATION]: '1' } });
  expect(object.spec).toMatchObject({
    updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } },
    revisionHistoryLimit: 10,
    template: { spec: { dnsPolicy: 'ClusterFirst', restartPolicy: 'Always' } },
  });
  expect(object.status).toEqual({
    currentNumberScheduled: 0,
    numberMisscheduled: 0,
    desiredNumberScheduled: 0,
    numberReady: 0,
  });
});

it('a DaemonSet that replaces Pods after their deletion has no default amounts', () => {
  const { object } = created(daemonSetKind, daemonSet({ updateStrategy: { type: 'OnDelete' } }));
  expect(object.spec?.updateStrategy).toEqual({ type: 'OnDelete' });
});

const ROLLING = 'spec.updateStrategy.rollingUpdate';

test.each<[string, object, unknown[]]>([
  [
    'no selector',
    { selector: undefined },
    ['spec.template.metadata.labels: Invalid value: {"app":"x"}: `selector` does not match template `labels`'],
  ],
  [
    'an empty selector',
    { selector: {} },
    ['spec.selector: Invalid value: {}: empty selector is invalid for daemonset'],
  ],
  [
    'a selector of other labels',
    { selector: { matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['x'] }] } },
    ['spec.template.metadata.labels: Invalid value: {"app":"x"}: `selector` does not match template `labels`'],
  ],
  [
    'an invalid selector',
    { selector: { matchLabels: { app: '-' } } },
    [expect.stringMatching(/^spec\.selector\.matchLabels: Invalid value: "-": a valid label must be/)],
  ],
  [
    'Pods that end',
    { template: template({ restartPolicy: 'Never', activeDeadlineSeconds: 5 }) },
    [
      'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
      'spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in DaemonSet is not Supported',
    ],
  ],
  [
    'an invalid container',
    { template: template({ containers: [{ ...app, name: 'Bad' }] }) },
    [expect.stringMatching(/^spec\.template\.spec\.containers\[0\]\.name: Invalid value: "Bad"/)],
  ],
  [
    'invalid defer containers',
    { template: template({ deferContainers: [{ ...app, trigger: 'Odd', name: 'd' }] }) },
    [expect.stringMatching(/^spec\.template\.spec\.deferContainers\[0\]\.trigger: Unsupported value: "Odd"/)],
  ],
  [
    'negative numbers',
    { minReadySeconds: -1, revisionHistoryLimit: -1 },
    [
      'spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0',
      'spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0',
    ],
  ],
  [
    'an unknown strategy',
    { updateStrategy: { type: 'Odd' } },
    ['spec.updateStrategy: Unsupported value: {"type":"Odd"}: supported values: "RollingUpdate", "OnDelete"'],
  ],
  ['a surge', rolling({ maxUnavailable: 0, maxSurge: '50%' }), []],
  ['a share of the nodes', rolling({ maxUnavailable: '100%', maxSurge: '0%' }), []],
  [
    'a surge and unavailable Pods',
    rolling({ maxUnavailable: '1%', maxSurge: 1 }),
    [`${ROLLING}.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero`],
  ],
  [
    'neither a surge nor unavailable Pods',
    rolling({ maxUnavailable: '0%', maxSurge: 0 }),
    [`${ROLLING}.maxUnavailable: Required value: cannot be 0 when maxSurge is 0`],
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
])('the rules for a DaemonSet with %s', (_, spec, errors) => {
  expect(created(daemonSetKind, daemonSet(spec)).errors).toEqual(errors);
});

test.each<[string, object, [generation: number, templateGeneration: string], string[]]>([
  ['nothing', {}, [1, '1'], []],
  ['a number', { minReadySeconds: 3 }, [2, '1'], []],
  ['the template', { template: template({ terminationGracePeriodSeconds: 3 }) }, [2, '2'], []],
  [
    'the selector',
    { selector: { matchExpressions: [{ key: 'app', operator: 'Exists' }] } },
    [2, '1'],
    ['spec.selector: Invalid value: {"matchExpressions":[{"key":"app","operator":"Exists"}]}: field is immutable'],
  ],
])(
  'an update that changes %s counts the generations of the DaemonSet and of its template',
  (_, spec, counted, errors) => {
    const { object, errors: found } = updated(daemonSetKind, daemonSet(), daemonSet(spec));
    const { generation, annotations } = object.metadata;
    expect([generation, annotations?.[TEMPLATE_GENERATION]]).toEqual(counted);
    expect(found).toEqual(errors);
  },
);

it('a client can set the generation of the template only when it creates the DaemonSet', () => {
  const given = (generation: string, spec: object = {}) => ({
    ...daemonSet(spec),
    metadata: { annotations: { [TEMPLATE_GENERATION]: generation, own: 'a' } },
  });
  const annotations = (object: DaemonSet) => object.metadata.annotations;
  expect(annotations(created(daemonSetKind, given('7')).object)).toEqual({ [TEMPLATE_GENERATION]: '7', own: 'a' });
  expect(annotations(created(daemonSetKind, given('-7')).object)?.[TEMPLATE_GENERATION]).toBe('1');
  expect(annotations(created(daemonSetKind, given('odd')).object)?.[TEMPLATE_GENERATION]).toBe('1');
  expect(annotations(updated(daemonSetKind, given('7'), given('9')).object)?.[TEMPLATE_GENERATION]).toBe('7');
});

it('an update of the status of a DaemonSet keeps the generation of the template', () => {
  const { object: old } = created(daemonSetKind, daemonSet());
  const status = { ...old.status, numberReady: 2 };
  const metadata = { ...old.metadata, annotations: { [TEMPLATE_GENERATION]: '9', own: 'a' } };
  const object = daemonSetKind.subresources['status']?.apply?.(old, { ...old, metadata, status } as DaemonSet, {
    now: NOW,
  });
  expect(object).toMatchObject({ status, metadata: { annotations: { [TEMPLATE_GENERATION]: '1', own: 'a' } } });
});

it('a DaemonSet warns about its template when it is created and when the template changes', () => {
  const odd = { nodeSelector: { 'beta.kubernetes.io/os': 'linux' } };
  const { object: old } = created(daemonSetKind, daemonSet({ template: template(odd) }));
  const warning =
    'spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead';
  expect(daemonSetKind.warnings?.(old)).toEqual([warning]);
  const warningsAfter = (spec: object) =>
    daemonSetKind.warnings?.(updated(daemonSetKind, old as never, daemonSet(spec)).object, old);
  expect(warningsAfter({ template: template(odd), minReadySeconds: 3 })).toEqual([]);
  expect(warningsAfter({ template: template({ ...odd, terminationGracePeriodSeconds: 3 }) })).toEqual([warning]);
});

it('the status of a DaemonSet has numbers that are not negative, and its count of collisions does not shrink', () => {
  const { object: old } = created(daemonSetKind, daemonSet());
  old.metadata = { ...old.metadata, resourceVersion: '1' };
  const none = { currentNumberScheduled: 0, numberMisscheduled: 0, desiredNumberScheduled: 0, numberReady: 0 };
  const errors = (status: object, oldStatus: object = {}) =>
    daemonSetKind.subresources['status']
      ?.validate?.({ ...old, status: { ...none, ...status } }, { ...old, status: { ...none, ...oldStatus } })
      .map(fieldErrorText);
  expect(errors({ numberReady: 2, collisionCount: 1 })).toEqual([]);
  expect(errors({ numberReady: -1, numberUnavailable: -1 })).toEqual([
    'status.numberReady: Invalid value: -1: must be greater than or equal to 0',
    'status.numberUnavailable: Invalid value: -1: must be greater than or equal to 0',
  ]);
  expect(errors({ collisionCount: 1 }, { collisionCount: 2 })).toEqual([
    'status.collisionCount: Invalid value: 1: cannot be decremented',
  ]);
  expect(errors({}, { collisionCount: 2 })).toEqual(['status.collisionCount: Invalid value: 0: cannot be decremented']);
});

it('the table of DaemonSets has the columns of v1.33', () => {
  expect([daemonSetKind.shortNames, daemonSetKind.categories]).toEqual([['ds'], ['all']]);
  expect(headings(daemonSetKind)).toEqual({
    narrow: 'NAME | DESIRED | CURRENT | READY | UP-TO-DATE | AVAILABLE | NODE SELECTOR | AGE',
    all: 'NAME | DESIRED | CURRENT | READY | UP-TO-DATE | AVAILABLE | NODE SELECTOR | AGE | CONTAINERS | IMAGES | SELECTOR',
  });
  const metadata = { creationTimestamp: '2026-01-31T11:59:00Z' };
  const spec = { template: template({ nodeSelector: { disk: 'ssd' } }) };
  const status = {
    desiredNumberScheduled: 5,
    currentNumberScheduled: 4,
    numberMisscheduled: 0,
    numberReady: 3,
    updatedNumberScheduled: 2,
    numberAvailable: 1,
  };
  const cells = [5, 4, 3, 2, 1, 'disk=ssd', '60s', 'app', 'busybox:1.28', 'app=x'];
  expect(row(daemonSetKind, { metadata, ...daemonSet(spec), status })).toEqual(['a', ...cells]);
});
