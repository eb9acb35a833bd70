/** Validation of the spec of Jobs and of templates of Jobs. Source: pkg/apis/batch/validation of v1.33 (behavior and wording). */
import {
  allErrors,
  type FieldError,
  invalid,
  notSupported,
  required,
  tooLong,
} from '../../../../machinery/field-error.ts';
import { dns1123SubdomainErrors } from '../../../../machinery/names.ts';
import { validateTemplate } from '../../../core/v1/pod-template/template.ts';
import type { JobSpec } from '../../../generated/types.ts';
import { nonNegative } from '../../../rules.ts';
import { validateFailurePolicy, validateSuccessPolicy } from './policies.ts';

const SOFT_LIMIT = 100_000;
const HIGH_COMPLETIONS_LIMIT = 10_000;
/** In bytes. */
const MAX_MANAGED_BY_LENGTH = 63;

const NUMBERS = [
  'parallelism',
  'completions',
  'activeDeadlineSeconds',
  'backoffLimit',
  'ttlSecondsAfterFinished',
  'backoffLimitPerIndex',
  'maxFailedIndexes',
] as const;

const validateNumbers = (spec: JobSpec, path: string): FieldError[] =>
  NUMBERS.flatMap((name) => {
    const value = spec[name] ?? 0;
    return nonNegative(value).map((text) => invalid(`${path}.${name}`, value, text));
  });

const PATH = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+";
const pathPattern = new RegExp(`^${PATH}$`);

/** Validates a domain with a path, such as `acme.io/foo`. Source: IsDomainPrefixedPath of k8s.io/apimachinery/pkg/util/validation. */
function domainPathErrors(value: string, at: string): FieldError[] {
  if (value === '') return [required(at)];
  const slash = value.indexOf('/');
  const [domain, path] = [value.slice(0, Math.max(slash, 0)), value.slice(slash + 1)];
  if (domain === '' || path === '')
    return [invalid(at, value, 'must be a domain-prefixed path (such as "acme.io/foo")')];
  const errors = dns1123SubdomainErrors(domain).map((text) => invalid(at, domain, text));
  return pathPattern.test(path)
    ? errors
    : [...errors, invalid(at, path, `Invalid path (regex used for validation is '${PATH}')`)];
}

function validateManagedBy({ managedBy }: JobSpec, path: string): FieldError[] {
  if (managedBy === undefined) return [];
  const at = `${path}.managedBy`;
  return [
    ...domainPathErrors(managedBy, at),
    ...(Buffer.byteLength(managedBy) > MAX_MANAGED_BY_LENGTH ? [tooLong(at, MAX_MANAGED_BY_LENGTH)] : []),
  ];
}

function validateIndexed(spec: JobSpec, path: string): FieldError[] {
  const { completions, parallelism, maxFailedIndexes, backoffLimitPerIndex } = spec;
  const errors: FieldError[] = [];
  const bound = (name: 'parallelism' | 'maxFailedIndexes', max: number, text: string): void => {
    const value = spec[name];
    if (value !== undefined && value > max) errors.push(invalid(`${path}.${name}`, value, text));
  };
  if (completions === undefined) errors.push(required(`${path}.completions`, 'when completion mode is Indexed'));
  bound('parallelism', SOFT_LIMIT, `must be less than or equal to ${SOFT_LIMIT} when completion mode is Indexed`);
  if (completions !== undefined) bound('maxFailedIndexes', completions, 'must be less than or equal to completions');
  bound('maxFailedIndexes', SOFT_LIMIT, `must be less than or equal to ${SOFT_LIMIT}`);
  if (completions === undefined || completions <= SOFT_LIMIT || backoffLimitPerIndex === undefined) return errors;
  if (maxFailedIndexes === undefined)
    errors.push(required(`${path}.maxFailedIndexes`, `must be specified when completions is above ${SOFT_LIMIT}`));
  const text = `must be less than or equal to ${HIGH_COMPLETIONS_LIMIT} when completions are above ${SOFT_LIMIT} and used with backoff limit per index`;
  if (parallelism !== undefined) bound('parallelism', HIGH_COMPLETIONS_LIMIT, text);
  bound('maxFailedIndexes', HIGH_COMPLETIONS_LIMIT, text);
  return errors;
}

function validateMode(spec: JobSpec, path: string): FieldError[] {
  const { completionMode = 'NonIndexed' } = spec;
  if (completionMode === 'Indexed') return validateIndexed(spec, path);
  if (completionMode !== 'NonIndexed')
    return [notSupported(`${path}.completionMode`, completionMode, ['NonIndexed', 'Indexed'])];
  return (['backoffLimitPerIndex', 'maxFailedIndexes'] as const)
    .filter((name) => spec[name] !== undefined)
    .map((name) => invalid(`${path}.${name}`, spec[name], 'requires indexed completion mode'));
}

function validateReplacement({ podReplacementPolicy: policy, podFailurePolicy }: JobSpec, path: string): FieldError[] {
  const known = podFailurePolicy === undefined ? ['Failed', 'TerminatingOrFailed'] : ['Failed'];
  return policy === undefined || known.includes(policy)
    ? []
    : [notSupported(`${path}.podReplacementPolicy`, policy, known)];
}

function validateRestartPolicy({ template, podFailurePolicy }: JobSpec, path: string): FieldError[] {
  const at = `${path}.template.spec.restartPolicy`;
  const policy = template?.spec?.restartPolicy ?? '';
  if (policy === '' || policy === 'Always') return [required(at, 'valid values: "OnFailure", "Never"')];
  if (policy !== 'OnFailure' && policy !== 'Never') return [notSupported(at, policy, ['OnFailure', 'Never'])];
  return podFailurePolicy !== undefined && policy !== 'Never'
    ? [invalid(at, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    : [];
}

/** The rules that Jobs and templates of Jobs have in common. `old`: the spec that is replaced; undefined on create. */
export const validateSharedSpec = (spec: JobSpec, old: JobSpec | undefined, path: string): FieldError[] =>
  allErrors(
    validateNumbers(spec, path),
    spec.maxFailedIndexes !== undefined && spec.backoffLimitPerIndex === undefined
      ? [required(`${path}.backoffLimitPerIndex`, 'when maxFailedIndexes is specified')]
      : [],
    validateManagedBy(spec, path),
    validateMode(spec, path),
    validateFailurePolicy(spec, `${path}.podFailurePolicy`),
    validateSuccessPolicy(spec, `${path}.successPolicy`),
    validateReplacement(spec, path),
    validateTemplate(spec.template, old?.template, `${path}.template`),
    validateRestartPolicy(spec, path),
  );
