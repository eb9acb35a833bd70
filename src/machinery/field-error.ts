/**
 * Validation errors with the path of the field, worded as upstream words them.
 * Source: k8s.io/apimachinery/pkg/util/validation/field (behaviour and wording).
 */
import type { StatusCause } from './meta.ts';

export type FieldErrorType =
  | 'FieldValueRequired'
  | 'FieldValueInvalid'
  | 'FieldValueNotSupported'
  | 'FieldValueDuplicate'
  | 'FieldValueForbidden'
  | 'FieldValueNotFound'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany'
  | 'FieldValueTypeInvalid'
  | 'InternalError';

export interface FieldError {
  type: FieldErrorType;
  /** spec.initContainers[0].name */
  field: string;
  /** The text after the path: `Required value`, `Invalid value: "x": must …`. */
  body: string;
}

/** A body of 3 MiB can have hundreds of thousands of errors: an answer lists the first of them. */
export const MAX_LISTED_ERRORS = 1000;

const shown = (value: unknown): string => {
  if (typeof value === 'string') return JSON.stringify(value);
  if (value === undefined || value === null) return 'null';
  return JSON.stringify(value);
};
const tail = (detail: string): string => (detail === '' ? '' : `: ${detail}`);

export const required = (field: string, detail = ''): FieldError => ({
  type: 'FieldValueRequired',
  field,
  body: `Required value${tail(detail)}`,
});

export const invalid = (field: string, value: unknown, detail: string): FieldError => ({
  type: 'FieldValueInvalid',
  field,
  body: `Invalid value: ${shown(value)}${tail(detail)}`,
});

export const typeInvalid = (field: string, value: unknown, detail: string): FieldError => ({
  type: 'FieldValueTypeInvalid',
  field,
  body: `Invalid value: ${shown(value)}${tail(detail)}`,
});

export const notSupported = (field: string, value: unknown, supported: readonly string[]): FieldError => ({
  type: 'FieldValueNotSupported',
  field,
  body: `Unsupported value: ${shown(value)}${
    supported.length === 0 ? '' : `: supported values: ${supported.map(shown).join(', ')}`
  }`,
});

export const duplicate = (field: string, value: unknown): FieldError => ({
  type: 'FieldValueDuplicate',
  field,
  body: `Duplicate value: ${shown(value)}`,
});

export const forbidden = (field: string, detail: string): FieldError => ({
  type: 'FieldValueForbidden',
  field,
  body: `Forbidden${tail(detail)}`,
});

export const notFoundField = (field: string, value: unknown): FieldError => ({
  type: 'FieldValueNotFound',
  field,
  body: `Not found: ${shown(value)}`,
});

export const tooLong = (field: string, maxBytes: number): FieldError => ({
  type: 'FieldValueTooLong',
  field,
  body: `Too long: may not be more than ${maxBytes} bytes`,
});

export const tooMany = (field: string, actual: number, max: number): FieldError => ({
  type: 'FieldValueTooMany',
  field,
  body: `Too many: ${actual}: must have at most ${max} item${max === 1 ? '' : 's'}`,
});

/** `spec.initContainers[0].name: Required value` */
export const fieldErrorText = (error: FieldError): string => `${error.field}: ${error.body}`;

export const fieldErrorCause = (error: FieldError): StatusCause => ({
  reason: error.type,
  message: error.body,
  field: error.field,
});
