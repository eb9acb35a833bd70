/**
 * The JSON in the annotations of HorizontalPodAutoscalers of autoscaling/v1: metrics for which v1 has no field, the behavior with the names
 * of Go's fields, and conditions. A text that cannot be decoded is read as undefined.
 * Source: pkg/apis/autoscaling/v1/conversion.go of v1.33 (formats).
 */
import {
  isDeeperThan,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  MAX_DEPTH,
} from '../../../../machinery/json-value.ts';
import type {
  V2HorizontalPodAutoscalerBehavior,
  V2HorizontalPodAutoscalerCondition,
  V2MetricSpec,
  V2MetricStatus,
} from '../../../generated/types.ts';
import { valueAt } from '../../../rules.ts';
import { decode } from '../../../schema.ts';

/** For each kind of source or status: the fields in v1, and their paths in v2. */
type Forms = Readonly<Record<string, Readonly<Record<string, string>>>>;

const METRIC = { metricName: 'metric.name', selector: 'metric.selector' };
const EXTERNAL_METRIC = { metricName: 'metric.name', metricSelector: 'metric.selector' };
const TARGET_AVERAGE = { targetAverageValue: 'target.averageValue' };
const CURRENT_AVERAGE = { currentAverageValue: 'current.averageValue' };
const RESOURCE = { name: 'name', targetAverageUtilization: 'target.averageUtilization', ...TARGET_AVERAGE };
const RESOURCE_STATUS = { name: 'name', currentAverageUtilization: 'current.averageUtilization', ...CURRENT_AVERAGE };

const SOURCES: Forms = {
  object: {
    target: 'describedObject',
    ...METRIC,
    targetValue: 'target.value',
    averageValue: 'target.averageValue',
  },
  pods: { ...METRIC, ...TARGET_AVERAGE },
  resource: RESOURCE,
  containerResource: { ...RESOURCE, container: 'container' },
  external: { ...EXTERNAL_METRIC, targetValue: 'target.value', ...TARGET_AVERAGE },
};

const STATUSES: Forms = {
  object: {
    target: 'describedObject',
    ...METRIC,
    currentValue: 'current.value',
    averageValue: 'current.averageValue',
  },
  pods: { ...METRIC, ...CURRENT_AVERAGE },
  resource: RESOURCE_STATUS,
  containerResource: { ...RESOURCE_STATUS, container: 'container' },
  external: { ...EXTERNAL_METRIC, currentValue: 'current.value', ...CURRENT_AVERAGE },
};

function asV1(metric: V2MetricSpec | V2MetricStatus, forms: Forms): JsonObject {
  const result: JsonObject = { type: metric.type };
  for (const [kind, form] of Object.entries(forms)) {
    const source = valueAt(metric, kind);
    if (source === undefined) continue;
    const fields = Object.entries(form).map(([name, path]) => [name, valueAt(source, path)] as const);
    result[kind] = Object.fromEntries(fields.filter(([, value]) => value !== undefined)) as JsonObject;
  }
  return result;
}

export const asV1Source = (metric: V2MetricSpec): JsonObject => asV1(metric, SOURCES);
export const asV1Status = (metric: V2MetricStatus): JsonObject => asV1(metric, STATUSES);

function asV2(source: JsonObject, form: Readonly<Record<string, string>>): JsonObject {
  const result: Record<string, JsonObject | JsonValue> = {};
  for (const [name, path] of Object.entries(form)) {
    const value = Object.hasOwn(source, name) ? source[name] : undefined;
    if (value === undefined || value === null) continue;
    const [outer = '', inner] = path.split('.');
    result[outer] = inner === undefined ? value : { ...(result[outer] as JsonObject | undefined), [inner]: value };
  }
  return result;
}

/** v1 lacks the type of a target, which follows from the kind of the source and the fields of the target. */
function targetType(kind: string, target: JsonObject): string {
  if (kind === 'external') return target['value'] === undefined ? 'AverageValue' : 'Value';
  if (kind === 'object') return target['averageValue'] === undefined ? 'Value' : 'AverageValue';
  return target['averageUtilization'] === undefined ? 'AverageValue' : 'Utilization';
}

function metricOf(item: JsonValue, forms: Forms): JsonValue {
  if (!isJsonObject(item)) return item;
  const result: JsonObject = { type: item['type'] ?? null };
  for (const [kind, form] of Object.entries(forms)) {
    const given = Object.hasOwn(item, kind) ? item[kind] : undefined;
    if (given === undefined || given === null) continue;
    const source = isJsonObject(given) ? asV2(given, form) : given;
    if (forms === SOURCES && isJsonObject(source)) {
      const target = (source['target'] ?? {}) as JsonObject;
      source['target'] = { type: targetType(kind, target), ...target };
    }
    result[kind] = source;
  }
  return result;
}

function parsed(text: string | undefined): JsonValue | undefined {
  if (text === undefined) return undefined;
  try {
    const value: JsonValue = JSON.parse(text);
    return isDeeperThan(MAX_DEPTH, value) ? undefined : value;
  } catch {
    return undefined;
  }
}

/** Returns undefined if the value does not match the type of autoscaling/v2. */
function decoded<T>(type: string, value: JsonValue): T | undefined {
  const result = decode(`io.k8s.api.autoscaling.v2.${type}`, value);
  return result.typeErrors.length > 0 ? undefined : (result.value as T);
}

function listOf<T>(type: string, text: string | undefined, form: (item: JsonValue) => JsonValue): T[] | undefined {
  const value = parsed(text);
  if (!Array.isArray(value)) return undefined;
  const items = value.map((item) => decoded<T>(type, form(item)));
  return items.every((item) => item !== undefined) ? items : undefined;
}

export const readSources = (text: string | undefined): V2MetricSpec[] | undefined =>
  listOf('MetricSpec', text, (item) => metricOf(item, SOURCES));

export const readStatuses = (text: string | undefined): V2MetricStatus[] | undefined =>
  listOf('MetricStatus', text, (item) => metricOf(item, STATUSES));

export const readConditions = (text: string | undefined): V2HorizontalPodAutoscalerCondition[] | undefined =>
  listOf('HorizontalPodAutoscalerCondition', text, (item) => item);

function renamed(value: JsonValue, rename: (name: string) => string): JsonValue {
  if (Array.isArray(value)) return value.map((item) => renamed(item, rename));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [rename(name), renamed(item, rename)]));
}

const changeFirst = (change: (letter: string) => string) => (name: string) => change(name.slice(0, 1)) + name.slice(1);

/** Returns the JSON of the behavior with the names of Go's fields, such as ScaleUp. */
export const behaviorText = (behavior: V2HorizontalPodAutoscalerBehavior): string =>
  JSON.stringify(
    renamed(
      behavior as JsonObject,
      changeFirst((letter) => letter.toUpperCase()),
    ),
  );

export function readBehavior(text: string | undefined): V2HorizontalPodAutoscalerBehavior | undefined {
  const value = parsed(text);
  if (!isJsonObject(value)) return undefined;
  const behavior = decoded<V2HorizontalPodAutoscalerBehavior>(
    'HorizontalPodAutoscalerBehavior',
    renamed(
      value,
      changeFirst((letter) => letter.toLowerCase()),
    ),
  );
  return behavior?.scaleUp === undefined && behavior?.scaleDown === undefined ? undefined : behavior;
}
