import { expect, it, test } from 'vitest';
import type { HorizontalPodAutoscaler, V2HorizontalPodAutoscaler, V2MetricSpec } from '../../../generated/types.ts';
import { created, row, updated } from '../../../testing.ts';
import { fromV2, toV2 } from './conversion.ts';
import { horizontalPodAutoscalerV1Kind } from './index.ts';

const PREFIX = 'autoscaling.alpha.kubernetes.io/';
const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' };
const autoscaler = (spec: object = {}, annotations: Record<string, string> = {}) => ({
  metadata: { annotations },
  spec: { scaleTargetRef, maxReplicas: 3, ...spec },
});
const utilization = (averageUtilization: number): V2MetricSpec => ({
  type: 'Resource',
  resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } },
});
const selector = { matchLabels: { a: 'b' } };

const metrics: V2MetricSpec[] = [
  { type: 'Resource', resource: { name: 'memory', target: { type: 'AverageValue', averageValue: '1Mi' } } },
  { type: 'Pods', pods: { metric: { name: 'hits', selector }, target: { type: 'AverageValue', averageValue: '1k' } } },
  {
    type: 'Object',
    object: {
      describedObject: scaleTargetRef,
      metric: { name: 'rate', selector },
      target: { type: 'AverageValue', averageValue: '2' },
    },
  },
  { type: 'External', external: { metric: { name: 'queue', selector }, target: { type: 'Value', value: '30' } } },
  {
    type: 'ContainerResource',
    containerResource: { name: 'cpu', container: 'app', target: { type: 'Utilization', averageUtilization: 9 } },
  },
];
const condition = {
  type: 'AbleToScale',
  status: 'True',
  lastTransitionTime: '2026-01-01T00:00:00Z',
  reason: 'a',
  message: 'b',
};
const rich: V2HorizontalPodAutoscaler = {
  apiVersion: 'autoscaling/v2',
  kind: 'HorizontalPodAutoscaler',
  metadata: { name: 'a', namespace: 'default', annotations: { own: 'x' } },
  spec: {
    scaleTargetRef,
    minReplicas: 1,
    maxReplicas: 3,
    metrics: [...metrics, utilization(50)],
    behavior: {
      scaleUp: { stabilizationWindowSeconds: 5, policies: [{ type: 'Pods', value: 4, periodSeconds: 15 }] },
    },
  },
  status: {
    observedGeneration: 1,
    lastScaleTime: '2026-01-01T00:00:00Z',
    currentReplicas: 2,
    desiredReplicas: 3,
    currentMetrics: [
      { type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: 40, averageValue: '4m' } } },
      { type: 'Pods', pods: { metric: { name: 'hits', selector }, current: { averageValue: '900' } } },
      {
        type: 'Object',
        object: { describedObject: scaleTargetRef, metric: { name: 'rate' }, current: { value: '3' } },
      },
      { type: 'External', external: { metric: { name: 'queue' }, current: { value: '3', averageValue: '1' } } },
    ],
    conditions: [condition],
  },
};

it('v1 has annotations for what it has no fields for, in the format of Kubernetes', () => {
  const converted = fromV2(rich);
  expect(converted).toMatchObject({
    apiVersion: 'autoscaling/v1',
    spec: { scaleTargetRef, minReplicas: 1, maxReplicas: 3, targetCPUUtilizationPercentage: 50 },
    status: { currentReplicas: 2, desiredReplicas: 3, currentCPUUtilizationPercentage: 40 },
  });
  const { own, ...annotations } = converted.metadata.annotations ?? {};
  expect(own).toBe('x');
  const parsed = Object.entries(annotations).map(([key, text]) => [key.replace(PREFIX, ''), JSON.parse(text)]);
  expect(Object.fromEntries(parsed)).toEqual({
    metrics: [
      { type: 'Resource', resource: { name: 'memory', targetAverageValue: '1Mi' } },
      { type: 'Pods', pods: { metricName: 'hits', selector, targetAverageValue: '1k' } },
      { type: 'Object', object: { target: scaleTargetRef, metricName: 'rate', selector, averageValue: '2' } },
      { type: 'External', external: { metricName: 'queue', metricSelector: selector, targetValue: '30' } },
      { type: 'ContainerResource', containerResource: { name: 'cpu', container: 'app', targetAverageUtilization: 9 } },
    ],
    behavior: {
      ScaleUp: { StabilizationWindowSeconds: 5, Policies: [{ Type: 'Pods', Value: 4, PeriodSeconds: 15 }] },
    },
    'current-metrics': [
      { type: 'Resource', resource: { name: 'cpu', currentAverageUtilization: 40, currentAverageValue: '4m' } },
      { type: 'Pods', pods: { metricName: 'hits', selector, currentAverageValue: '900' } },
      { type: 'Object', object: { target: scaleTargetRef, metricName: 'rate', currentValue: '3' } },
      { type: 'External', external: { metricName: 'queue', currentValue: '3', currentAverageValue: '1' } },
    ],
    conditions: [condition],
  });
});

it('an object of v2 is the same after a conversion to v1 and back', () => {
  expect(toV2(fromV2(rich))).toEqual(rich);
});

it('the behavior is read as Go writes it, with null for absent fields', () => {
  const text = '{"ScaleUp":null,"ScaleDown":{"SelectPolicy":"Min","Policies":null,"Tolerance":null}}';
  const { spec } = created(horizontalPodAutoscalerV1Kind, autoscaler({}, { [`${PREFIX}behavior`]: text })).object;
  expect(spec).toEqual({ scaleTargetRef, minReplicas: 1, maxReplicas: 3, targetCPUUtilizationPercentage: 80 });
  const behavior = toV2(created(horizontalPodAutoscalerV1Kind, autoscaler({}, { [`${PREFIX}behavior`]: text })).object)
    .spec?.behavior;
  expect(behavior?.scaleDown).toEqual({
    selectPolicy: 'Min',
    policies: [{ type: 'Percent', value: 100, periodSeconds: 15 }],
  });
});

test.each([
  '',
  '[',
  '{}',
  '[1]',
  '[{"type":5}]',
  '[{"type":"Pods","pods":7}]',
  `${'['.repeat(2000)}${']'.repeat(2000)}`,
])('annotations of a new object that are not valid JSON of the type are dropped: %.20s', (text) => {
  const all = ['metrics', 'behavior', 'current-metrics', 'conditions'].map((name) => [PREFIX + name, text]);
  const body = { ...autoscaler({}, Object.fromEntries(all)), status: {} };
  const { object, errors } = created(horizontalPodAutoscalerV1Kind, body);
  expect(errors).toEqual([]);
  expect(object).toMatchObject({
    spec: { targetCPUUtilizationPercentage: 80 },
    status: { currentReplicas: 0, desiredReplicas: 0 },
  });
  expect(object.metadata.annotations).toBeUndefined();
});

it('a new object of v1 cannot set its status by annotations', () => {
  const annotations = { [`${PREFIX}conditions`]: JSON.stringify([condition]), [`${PREFIX}current-metrics`]: '[]' };
  const { object } = created(horizontalPodAutoscalerV1Kind, autoscaler({}, annotations));
  expect(object.metadata.annotations).toBeUndefined();
});

it('the rules of v2 apply to v1, also to the metrics in annotations', () => {
  const annotations = {
    [`${PREFIX}metrics`]: '[{"type":"Pods","pods":{"metricName":"hits","targetAverageValue":"0"}}]',
  };
  const errors = [
    'spec.maxReplicas: Invalid value: 0: must be greater than 0',
    'spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`',
    'spec.metrics[0].pods.target.averageValue: Invalid value: "0": must be positive',
  ];
  const invalid = autoscaler({ maxReplicas: 0 }, annotations);
  expect(created(horizontalPodAutoscalerV1Kind, invalid).errors).toEqual(errors);
  expect(updated(horizontalPodAutoscalerV1Kind, autoscaler(), invalid).errors).toEqual(errors);
});

it('an update of v1 keeps the status, and one of the status keeps the spec and the behavior', () => {
  const old = fromV2(rich);
  const { metadata, spec } = old;
  const changed = structuredClone({ ...old, spec: { ...spec, maxReplicas: 9 } }) as HorizontalPodAutoscaler;
  delete changed.status;
  horizontalPodAutoscalerV1Kind.prepareForUpdate?.(changed, old, { now: 0 });
  expect(changed.status).toEqual(old.status);
  expect(changed.spec?.maxReplicas).toBe(9);
  const status = { currentReplicas: 5, desiredReplicas: 5, currentCPUUtilizationPercentage: 70 };
  const body = { ...old, metadata: { ...metadata, annotations: {} }, spec: { scaleTargetRef, maxReplicas: 1 }, status };
  const written = horizontalPodAutoscalerV1Kind.subresources['status']?.apply?.(old, body, { now: 0 });
  expect(written).toMatchObject({ spec, status });
  expect(toV2(written as HorizontalPodAutoscaler).spec?.behavior?.scaleUp).toMatchObject({
    stabilizationWindowSeconds: 5,
  });
});

it('v1 has the table of v2', () => {
  const body = { ...autoscaler({ targetCPUUtilizationPercentage: 50 }), status: { currentReplicas: 2 } };
  expect(row(horizontalPodAutoscalerV1Kind, body)).toEqual([
    'a',
    'Deployment/web',
    'cpu: <unknown>/50%',
    '1',
    3,
    2,
    '<unknown>',
  ]);
});
