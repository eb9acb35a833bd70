/** Validation of the metrics of HorizontalPodAutoscalers. Source: pkg/apis/autoscaling/validation of v1.33 (behavior and wording). */
import {
  allErrors,
  type FieldError,
  forbidden,
  invalid,
  notSupported,
  required,
} from '../../../../machinery/field-error.ts';
import { dns1123LabelErrors } from '../../../../machinery/names.ts';
import { parseQuantity } from '../../../../machinery/quantity.ts';
import { validateResourceName } from '../../../core/v1/pod/validation/validate-resources.ts';
import type {
  V2ContainerResourceMetricSource,
  V2ExternalMetricSource,
  V2MetricSpec,
  V2MetricTarget,
  V2ObjectMetricSource,
  V2PodsMetricSource,
  V2ResourceMetricSource,
} from '../../../generated/types.ts';
import { validateReference, validateSegment } from './references.ts';

const positive = (quantity: string | undefined, path: string): FieldError[] =>
  quantity === undefined || (parseQuantity(quantity)?.nano ?? 0n) > 0n
    ? []
    : [invalid(path, quantity, 'must be positive')];

const TARGET_TYPES = ['Utilization', 'Value', 'AverageValue'];

function validateTarget({ type, value, averageValue, averageUtilization }: V2MetricTarget, path: string): FieldError[] {
  return allErrors(
    type ? [] : [required(`${path}.type`, 'must specify a metric target type')],
    TARGET_TYPES.includes(type)
      ? []
      : [invalid(`${path}.type`, type, 'must be either Utilization, Value, or AverageValue')],
    positive(value, `${path}.value`),
    positive(averageValue, `${path}.averageValue`),
    averageUtilization !== undefined && averageUtilization < 1
      ? [invalid(`${path}.averageUtilization`, averageUtilization, 'must be greater than 0')]
      : [],
  );
}

interface Measured {
  metric: { name: string };
  target: V2MetricTarget;
}

const validateMeasured = ({ metric, target }: Measured, path: string): FieldError[] => [
  ...validateSegment(metric.name, `${path}.metric.name`, 'must specify a metric name'),
  ...validateTarget(target, `${path}.target`),
];

function validateObject(source: V2ObjectMetricSource, path: string): FieldError[] {
  const { describedObject, target } = source;
  return allErrors(
    validateReference(describedObject, `${path}.describedObject`),
    validateMeasured(source, path),
    target.value === undefined && target.averageValue === undefined
      ? [required(`${path}.target.averageValue`, 'must set either a target value or averageValue')]
      : [],
  );
}

function validateExternal(source: V2ExternalMetricSource, path: string): FieldError[] {
  const { value, averageValue } = source.target;
  return allErrors(
    validateMeasured(source, path),
    value === undefined && averageValue === undefined
      ? [required(`${path}.target.averageValue`, 'must set either a target value for metric or a per-pod target')]
      : [],
    value !== undefined && averageValue !== undefined
      ? [forbidden(`${path}.target.value`, 'may not set both a target value for metric and a per-pod target')]
      : [],
  );
}

const validatePods = (source: V2PodsMetricSource, path: string): FieldError[] => [
  ...validateMeasured(source, path),
  ...(source.target.averageValue === undefined
    ? [required(`${path}.target.averageValue`, 'must specify a positive target averageValue')]
    : []),
];

function validateUsage(target: V2MetricTarget, path: string): FieldError[] {
  const { averageUtilization, averageValue } = target;
  const missing = 'must set either a target raw value or a target utilization';
  return allErrors(
    validateTarget(target, path),
    averageUtilization === undefined && averageValue === undefined
      ? [required(`${path}.averageUtilization`, missing)]
      : [],
    averageUtilization !== undefined && averageValue !== undefined
      ? [forbidden(`${path}.averageValue`, 'may not set both a target raw value and a target utilization')]
      : [],
  );
}

const noName = (path: string): FieldError[] => [required(`${path}.name`, 'must specify a resource name')];

const validateResource = ({ name, target }: V2ResourceMetricSource, path: string): FieldError[] => [
  ...(name ? [] : noName(path)),
  ...validateUsage(target, `${path}.target`),
];

const validateContainer = ({ name, container, target }: V2ContainerResourceMetricSource, path: string): FieldError[] =>
  allErrors(
    name ? validateResourceName(name, `${path}.name`) : noName(path),
    container
      ? dns1123LabelErrors(container).map((text) => invalid(`${path}.container`, container, text))
      : [required(`${path}.container`, 'must specify a container')],
    validateUsage(target, `${path}.target`),
  );

/** The fields are in the order in which upstream validates the sources. */
const FIELDS = {
  Object: 'object',
  External: 'external',
  Pods: 'pods',
  Resource: 'resource',
  ContainerResource: 'containerResource',
} as const;
type SourceField = (typeof FIELDS)[keyof typeof FIELDS];

const TYPES = Object.keys(FIELDS).sort();

function validateSource(field: SourceField, metric: V2MetricSpec, path: string): FieldError[] {
  const { object, external, pods, resource, containerResource } = metric;
  if (field === 'object' && object !== undefined) return validateObject(object, path);
  if (field === 'external' && external !== undefined) return validateExternal(external, path);
  if (field === 'pods' && pods !== undefined) return validatePods(pods, path);
  if (field === 'resource' && resource !== undefined) return validateResource(resource, path);
  return containerResource === undefined ? [] : validateContainer(containerResource, path);
}

export function validateMetric(metric: V2MetricSpec, path: string): FieldError[] {
  const { type } = metric;
  const expected = Object.hasOwn(FIELDS, type) ? FIELDS[type as keyof typeof FIELDS] : undefined;
  const present = Object.values(FIELDS).filter((field) => metric[field] !== undefined);
  const [first] = present;
  const others = present.length === 1 ? [] : present.filter((field) => field !== expected);
  return allErrors(
    type ? [] : [required(`${path}.type`, 'must specify a metric source type')],
    expected === undefined ? [notSupported(`${path}.type`, type, TYPES)] : [],
    first === undefined ? [] : validateSource(first, metric, `${path}.${first}`),
    expected !== undefined && !present.includes(expected)
      ? [required(`${path}.${expected}`, 'must populate information for the given metric source')]
      : [],
    others.map((field) => forbidden(`${path}.${field}`, 'must populate the given metric source only')),
  );
}
