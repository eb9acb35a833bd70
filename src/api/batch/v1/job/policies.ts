/** Validation of the policies of Jobs. Source: pkg/apis/batch/validation of v1.33 (behavior and wording). */
import {
  allErrors,
  duplicate,
  type FieldError,
  invalid,
  invalidPart,
  notSupported,
  required,
  tooLong,
  tooMany,
} from '../../../../machinery/field-error.ts';
import { qualifiedNameErrors } from '../../../../machinery/names.ts';
import type { JobSpec, PodFailurePolicyRule, SuccessPolicyRule } from '../../../generated/types.ts';
import { countIndexes } from './indexes.ts';

const MAX_RULES = 20;
const MAX_VALUES = 255;
/** In bytes. */
const MAX_INDEXES_LENGTH = 64 * 1024;
const ACTIONS = ['Count', 'FailIndex', 'FailJob', 'Ignore'];

const quoted = (values: readonly string[]): string => `[${values.map((value) => JSON.stringify(value)).join(' ')}]`;

export const oneOfKnown = (value: string | undefined, known: readonly string[], path: string): FieldError[] => {
  if (!value) return [required(path, `valid values: ${quoted(known)}`)];
  return known.includes(value) ? [] : [notSupported(path, value, known)];
};

const atMost = (items: readonly unknown[], max: number, path: string): FieldError[] =>
  items.length > max ? [tooMany(path, items.length, max)] : [];

function validateExitCodes(
  { containerName, operator, values = [] }: NonNullable<PodFailurePolicyRule['onExitCodes']>,
  containers: ReadonlySet<string>,
  path: string,
): FieldError[] {
  const errors = oneOfKnown(operator, ['In', 'NotIn'], `${path}.operator`);
  if (containerName !== undefined && !containers.has(containerName)) {
    const text = 'must be one of the container or initContainer names in the pod template';
    errors.push(invalid(`${path}.containerName`, containerName, text));
  }
  if (values.length === 0) errors.push(invalid(`${path}.values`, values, 'at least one value is required'));
  errors.push(...atMost(values, MAX_VALUES, `${path}.values`));
  const seen = new Set<number>();
  for (const [index, value] of values.entries()) {
    const at = `${path}.values[${index}]`;
    if (operator === 'In' && value === 0) errors.push(invalid(at, value, 'must not be 0 for the In operator'));
    if (seen.has(value)) errors.push(duplicate(at, value));
    seen.add(value);
  }
  if (values.some((value, index) => (values[index - 1] ?? value) > value))
    errors.push(invalid(`${path}.values`, values, 'must be ordered'));
  return errors;
}

function validateFailureRule(
  rule: PodFailurePolicyRule,
  spec: JobSpec,
  containers: ReadonlySet<string>,
  path: string,
): FieldError[] {
  const { action, onExitCodes, onPodConditions = [] } = rule;
  const errors = oneOfKnown(action, ACTIONS, `${path}.action`);
  if (action === 'FailIndex' && spec.backoffLimitPerIndex === undefined)
    errors.push(invalid(`${path}.action`, action, 'requires the backoffLimitPerIndex to be set'));
  if (onExitCodes !== undefined) errors.push(...validateExitCodes(onExitCodes, containers, `${path}.onExitCodes`));
  errors.push(...atMost(onPodConditions, MAX_RULES, `${path}.onPodConditions`));
  for (const [index, { type, status }] of onPodConditions.entries()) {
    const at = `${path}.onPodConditions[${index}]`;
    errors.push(...qualifiedNameErrors(type).map((text) => invalid(`${at}.type`, type, text)));
    errors.push(...oneOfKnown(status, ['False', 'True', 'Unknown'], `${at}.status`));
  }
  const given = (onExitCodes === undefined ? 0 : 1) + (onPodConditions.length > 0 ? 1 : 0);
  if (given === 2) errors.push(invalidPart(path, 'specifying both OnExitCodes and OnPodConditions is not supported'));
  if (given === 0) errors.push(invalidPart(path, 'specifying one of OnExitCodes and OnPodConditions is required'));
  return errors;
}

/** Job templates in CronJobs also get this default, but no other defaults of Jobs. */
export function defaultFailurePolicy({ podFailurePolicy }: JobSpec): void {
  for (const { onPodConditions = [] } of podFailurePolicy?.rules ?? [])
    for (const condition of onPodConditions) condition.status ||= 'True';
}

export function validateFailurePolicy(spec: JobSpec, path: string): FieldError[] {
  const { podFailurePolicy, template } = spec;
  if (podFailurePolicy === undefined) return [];
  const { containers = [], initContainers = [] } = template?.spec ?? {};
  const names = new Set([...containers, ...initContainers].map(({ name }) => name));
  const rules = podFailurePolicy.rules ?? [];
  return allErrors(
    atMost(rules, MAX_RULES, `${path}.rules`),
    ...rules.map((rule, index) => validateFailureRule(rule, spec, names, `${path}.rules[${index}]`)),
  );
}

function validateSuccessRule(rule: SuccessPolicyRule, completions: number, path: string): FieldError[] {
  const { succeededCount, succeededIndexes } = rule;
  if (succeededCount === undefined && succeededIndexes === undefined)
    return [required(path, 'at least one of succeededCount or succeededIndexes must be specified')];
  const errors: FieldError[] = [];
  if (Buffer.byteLength(succeededIndexes ?? '') > MAX_INDEXES_LENGTH)
    errors.push(tooLong(`${path}.succeededIndexes`, MAX_INDEXES_LENGTH));
  let indexes = 0;
  try {
    if (succeededIndexes !== undefined) indexes = countIndexes(succeededIndexes, completions);
  } catch (error) {
    const text = `error parsing succeededIndexes: ${(error as Error).message}`;
    errors.push(invalid(`${path}.succeededIndexes`, succeededIndexes, text));
  }
  if (succeededCount === undefined) return errors;
  const at = `${path}.succeededCount`;
  if (succeededCount < 0) errors.push(invalid(at, succeededCount, 'must be greater than or equal to 0'));
  const bound = (count: number, of: string): FieldError[] =>
    succeededCount > count ? [invalid(at, succeededCount, `must be less than or equal to ${count} (${of})`)] : [];
  errors.push(...bound(completions, 'the number of specified completions'));
  if (succeededIndexes !== undefined)
    errors.push(...bound(indexes, 'the number of indexes in the specified succeededIndexes field'));
  return errors;
}

export function validateSuccessPolicy(
  { successPolicy, completionMode, completions = 0 }: JobSpec,
  path: string,
): FieldError[] {
  if (successPolicy === undefined) return [];
  if (completionMode !== 'Indexed') return [invalid(path, successPolicy, 'requires indexed completion mode')];
  const rules = successPolicy.rules ?? [];
  return allErrors(
    rules.length === 0
      ? [required(`${path}.rules`, 'at least one rules must be specified when the successPolicy is specified')]
      : [],
    atMost(rules, MAX_RULES, `${path}.rules`),
    ...rules.map((rule, index) => validateSuccessRule(rule, completions, `${path}.rules[${index}]`)),
  );
}
