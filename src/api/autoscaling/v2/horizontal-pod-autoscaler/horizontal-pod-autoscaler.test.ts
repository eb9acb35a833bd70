import { expect, it, test } from 'vitest';
import { fieldErrorText } from '../../../../machinery/field-error.ts';
import type { V2HorizontalPodAutoscaler } from '../../../generated/types.ts';
import { created, headings, row, updated } from '../../../testing.ts';
import { horizontalPodAutoscalerKind } from './index.ts';

const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' };
const autoscaler = (spec: object = {}) => ({ spec: { scaleTargetRef, maxReplicas: 3, ...spec } });
const cpu = { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } } };
const pods = { metric: { name: 'hits' }, target: { type: 'AverageValue', averageValue: '1k' } };
const object = { describedObject: scaleTargetRef, metric: { name: 'rate' }, target: { type: 'Value', value: '10' } };
const external = { metric: { name: 'queue' }, target: { type: 'Value', value: '30' } };
const byPods = { type: 'Pods', value: 4, periodSeconds: 15 };
const byPercent = { type: 'Percent', value: 100, periodSeconds: 15 };

it('a new HorizontalPodAutoscaler gets its defaults and an empty status', () => {
  const { object: made, errors } = created(horizontalPodAutoscalerKind, {
    ...autoscaler({ behavior: { scaleDown: { selectPolicy: 'Min', tolerance: '0.1' } } }),
    status: { desiredReplicas: 3, currentReplicas: 3 },
  });
  expect(errors).toEqual([]);
  expect(made.metadata.generation).toBeUndefined();
  expect(made.spec).toEqual({
    scaleTargetRef,
    minReplicas: 1,
    maxReplicas: 3,
    metrics: [{ type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } } }],
    behavior: {
      scaleUp: { stabilizationWindowSeconds: 0, selectPolicy: 'Max', policies: [byPods, byPercent] },
      scaleDown: { selectPolicy: 'Min', policies: [byPercent] },
    },
  });
  expect(made.status).toEqual({ currentMetrics: [], desiredReplicas: 0 });
});

it('a HorizontalPodAutoscaler without a behavior gets none', () => {
  expect(created(horizontalPodAutoscalerKind, autoscaler()).object.spec?.behavior).toBeUndefined();
});

test.each<[string, object, string[]]>([
  ['no fields that are wrong', { metrics: [cpu, { type: 'Pods', pods }, { type: 'Object', object }] }, []],
  [
    'no minimum or maximum',
    { minReplicas: 0, maxReplicas: 0 },
    [
      'spec.minReplicas: Invalid value: 0: must be greater than or equal to 1',
      'spec.maxReplicas: Invalid value: 0: must be greater than 0',
    ],
  ],
  [
    'a minimum above the maximum',
    { minReplicas: 4 },
    ['spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`'],
  ],
  [
    'a target without a name, and with a kind that is no segment of a path',
    { scaleTargetRef: { kind: 'a/b', name: '' } },
    [
      'spec.scaleTargetRef.kind: Invalid value: "a/b": may not contain \'/\'',
      'spec.scaleTargetRef.name: Required value',
    ],
  ],
  [
    'metrics of no type and of an unknown one',
    { metrics: [{ type: '' }, { type: 'Odd', pods }] },
    [
      'spec.metrics[0].type: Required value: must specify a metric source type',
      'spec.metrics[0].type: Unsupported value: "": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"',
      'spec.metrics[1].type: Unsupported value: "Odd": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"',
    ],
  ],
  [
    'the source of another type, and two sources',
    {
      metrics: [
        { type: 'Object', pods },
        { type: 'Pods', pods, external },
      ],
    },
    [
      'spec.metrics[0].object: Required value: must populate information for the given metric source',
      'spec.metrics[1].external: Forbidden: must populate the given metric source only',
    ],
  ],
  [
    'an object without a target',
    { metrics: [{ type: 'Object', object: { ...object, target: { type: '' } } }] },
    [
      'spec.metrics[0].object.target.type: Required value: must specify a metric target type',
      'spec.metrics[0].object.target.type: Invalid value: "": must be either Utilization, Value, or AverageValue',
      'spec.metrics[0].object.target.averageValue: Required value: must set either a target value or averageValue',
    ],
  ],
  [
    'an external metric without a name and with two targets',
    { metrics: [{ type: 'External', external: { metric: {}, target: { ...external.target, averageValue: '0' } } }] },
    [
      'spec.metrics[0].external.metric.name: Required value: must specify a metric name',
      'spec.metrics[0].external.target.averageValue: Invalid value: "0": must be positive',
      'spec.metrics[0].external.target.value: Forbidden: may not set both a target value for metric and a per-pod target',
    ],
  ],
  [
    'a metric of Pods with the value of another type',
    { metrics: [{ type: 'Pods', pods: { ...pods, target: { type: 'Value', value: '-1' } } }] },
    [
      'spec.metrics[0].pods.target.value: Invalid value: "-1": must be positive',
      'spec.metrics[0].pods.target.averageValue: Required value: must specify a positive target averageValue',
    ],
  ],
  [
    'a resource without a name and a target',
    { metrics: [{ type: 'Resource', resource: { target: { type: 'Utilization' } } }] },
    [
      'spec.metrics[0].resource.name: Required value: must specify a resource name',
      'spec.metrics[0].resource.target.averageUtilization: Required value: must set either a target raw value or a target utilization',
    ],
  ],
  [
    'an unknown resource of a container with two targets',
    {
      metrics: [
        {
          type: 'ContainerResource',
          containerResource: {
            name: 'odd',
            container: 'A',
            target: { type: 'Utilization', averageUtilization: 0, averageValue: '1' },
          },
        },
      ],
    },
    [
      'spec.metrics[0].containerResource.name: Invalid value: "odd": must be a standard resource for containers',
      expect.stringMatching(
        /^spec\.metrics\[0\]\.containerResource\.container: Invalid value: "A": a lowercase RFC 1123/,
      ),
      'spec.metrics[0].containerResource.target.averageUtilization: Invalid value: 0: must be greater than 0',
      'spec.metrics[0].containerResource.target.averageValue: Forbidden: may not set both a target raw value and a target utilization',
    ],
  ],
  [
    'invalid scaling rules',
    {
      behavior: {
        scaleUp: { stabilizationWindowSeconds: -1, selectPolicy: 'Odd', policies: [] },
        scaleDown: {
          stabilizationWindowSeconds: 3601,
          policies: [
            { type: 'Odd', value: 0, periodSeconds: 0 },
            { ...byPods, periodSeconds: 1801 },
          ],
        },
      },
    },
    [
      'spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: -1: must be greater than or equal to zero',
      'spec.behavior.scaleUp.selectPolicy: Unsupported value: "Odd": supported values: "Disabled", "Max", "Min"',
      'spec.behavior.scaleUp.policies: Required value: must specify at least one Policy',
      'spec.behavior.scaleDown.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600',
      'spec.behavior.scaleDown.policies[0].type: Unsupported value: "Odd": supported values: "Percent", "Pods"',
      'spec.behavior.scaleDown.policies[0].value: Invalid value: 0: must be greater than zero',
      'spec.behavior.scaleDown.policies[0].periodSeconds: Invalid value: 0: must be greater than zero',
      'spec.behavior.scaleDown.policies[1].periodSeconds: Invalid value: 1801: must be less than or equal to 1800',
    ],
  ],
])('the rules for a HorizontalPodAutoscaler with %s', (_, spec, errors) => {
  expect(created(horizontalPodAutoscalerKind, autoscaler(spec)).errors).toEqual(errors);
  expect(updated(horizontalPodAutoscalerKind, autoscaler(), autoscaler(spec)).errors).toEqual(errors);
});

it('a status with negative numbers is rejected', () => {
  const made = created(horizontalPodAutoscalerKind, autoscaler()).object;
  const old: V2HorizontalPodAutoscaler = { ...made, metadata: { ...made.metadata, resourceVersion: '1' } };
  const status = { currentReplicas: -1, desiredReplicas: -2 };
  const errors = horizontalPodAutoscalerKind.subresources['status']?.validate?.({ ...old, status }, old) ?? [];
  expect(errors.map(fieldErrorText)).toEqual([
    'status.currentReplicas: Invalid value: -1: must be greater than or equal to 0',
    'status.desiredReplicas: Invalid value: -2: must be greater than or equal to 0',
  ]);
});

test.each<[string, object, object, string]>([
  ['no status', {}, {}, 'cpu: <unknown>/80%'],
  ['a percentage', {}, { resource: { name: 'cpu', current: { averageUtilization: 40 } } }, 'cpu: 40%/80%'],
  [
    'a usage',
    {
      metrics: [
        { type: 'Resource', resource: { name: 'memory', target: { type: 'AverageValue', averageValue: '1Mi' } } },
      ],
    },
    { resource: { name: 'memory', current: { averageValue: '512Ki' } } },
    'memory: 512Ki/1Mi',
  ],
  ['Pods', { metrics: [{ type: 'Pods', pods }] }, { pods: { current: { averageValue: '900' } } }, '900/1k'],
  ['an object', { metrics: [{ type: 'Object', object }] }, { object: { current: { value: '9' } } }, '9/10'],
  [
    'an average',
    { metrics: [{ type: 'External', external: { ...external, target: { type: 'AverageValue', averageValue: '5' } } }] },
    { external: { current: { averageValue: '4' } } },
    '4/5 (avg)',
  ],
  [
    'more metrics than are shown',
    { metrics: [cpu, { type: 'Odd' }, cpu, cpu] },
    {},
    'cpu: <unknown>/50%, <unknown type> + 2 more...',
  ],
])('the targets of a HorizontalPodAutoscaler with %s', (_, spec, current, cell) => {
  const status = { currentReplicas: 2, desiredReplicas: 2, currentMetrics: [{ type: '', ...current }] };
  expect(row(horizontalPodAutoscalerKind, { ...autoscaler(spec), status })).toEqual([
    'a',
    'Deployment/web',
    cell,
    '1',
    3,
    2,
    '<unknown>',
  ]);
});

it('the table of HorizontalPodAutoscalers has the columns of kubectl', () => {
  const columns = 'NAME | REFERENCE | TARGETS | MINPODS | MAXPODS | REPLICAS | AGE';
  expect(headings(horizontalPodAutoscalerKind)).toEqual({ narrow: columns, all: columns });
});
