/**
 * Validation of lists of conditions of the type meta/v1 Condition.
 * Source: ValidateConditions of k8s.io/apimachinery/pkg/apis/meta/v1/validation (behavior and wording).
 */
import {
  allErrors,
  duplicate,
  type FieldError,
  invalid,
  notSupported,
  required,
  tooLong,
} from '../machinery/field-error.ts';
import { qualifiedNameErrors } from '../machinery/names.ts';
import type { Condition } from './generated/types.ts';

const REASON =
  "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name', or 'MY_NAME', or 'MyName', or 'ReasonA,ReasonB', or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";
const MAX_REASON_BYTES = 1024;
const MAX_MESSAGE_BYTES = 32 * 1024;

const longer = (text: string, maxBytes: number, path: string): FieldError[] =>
  Buffer.byteLength(text) > maxBytes ? [tooLong(path, maxBytes)] : [];

function validateReason(reason: string, path: string): FieldError[] {
  if (reason === '') return [required(path, 'must be set')];
  return allErrors(
    /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/.test(reason) ? [] : [invalid(path, reason, REASON)],
    longer(reason, MAX_REASON_BYTES, path),
  );
}

function validateCondition(condition: Condition, path: string): FieldError[] {
  const { type, status, observedGeneration = 0, lastTransitionTime, reason, message } = condition;
  return allErrors(
    type
      ? qualifiedNameErrors(type).map((text) => invalid(`${path}.type`, type, text))
      : [required(`${path}.type`, 'must be set')],
    ['True', 'False', 'Unknown'].includes(status)
      ? []
      : [notSupported(`${path}.status`, status ?? '', ['False', 'True', 'Unknown'])],
    observedGeneration < 0
      ? [invalid(`${path}.observedGeneration`, observedGeneration, 'must be greater than or equal to zero')]
      : [],
    lastTransitionTime ? [] : [required(`${path}.lastTransitionTime`, 'must be set')],
    validateReason(reason ?? '', `${path}.reason`),
    longer(message ?? '', MAX_MESSAGE_BYTES, `${path}.message`),
  );
}

export function conditionListErrors(conditions: readonly Condition[] | undefined, path: string): FieldError[] {
  const seen = new Set<string>();
  return (conditions ?? []).flatMap((condition, index) => {
    const isRepeated = seen.has(condition.type);
    seen.add(condition.type);
    return allErrors(
      isRepeated ? [duplicate(`${path}[${index}].type`, condition.type)] : [],
      validateCondition(condition, `${path}[${index}]`),
    );
  });
}
