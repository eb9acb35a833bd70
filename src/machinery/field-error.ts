/**
 * Creates validation errors with the path of the field, in upstream's wording.
 * Source: k8s.io/apimachinery/pkg/util/validation/field (behavior and wording).
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
  /** The path of the field, such as `spec.initContainers[0].name`. */
  field: string;
  /** The text after the path: `Required value`, `Invalid value: "x": must …`. */
  body: string;
}

/** Limits the errors in a response: a request body of 3 MiB can contain hundreds of thousands. */
export const MAX_LISTED_ERRORS = 1000;
/** The maximum total length of the listed errors, in UTF-8 bytes. */
const MAX_LISTED_BYTES = 1024 * 1024;

/** The length to which values and paths of fields are truncated, in UTF-16 code units. */
const MAX_SHOWN_CHARACTERS = 4096;
/** The length to which an error's body is truncated, in UTF-16 code units. Some errors quote several values, such as all changed fields. */
const MAX_BODY_CHARACTERS = 64 * 1024;

const cut = (text: string, characters: number): string =>
  text.length > characters ? `${text.slice(0, characters)}…` : text;

/** Truncates a string before it is quoted: a thousand errors may quote the same long string. */
const shown = (value: unknown): string =>
  value === undefined || value === null
    ? 'null'
    : typeof value === 'string'
      ? JSON.stringify(cut(value, MAX_SHOWN_CHARACTERS))
      : cut(JSON.stringify(value), MAX_SHOWN_CHARACTERS);

const tail = (detail: string): string => (detail === '' ? '' : `: ${detail}`);

/** Stops a validation that has found more errors than a response lists. */
class EnoughErrors extends Error {}

/** The errors of the current call of firstErrors(); undefined outside of such a call. */
let made: FieldError[] | undefined;

/**
 * Stops the validation after one error more than a response lists, and returns the errors so far. Therefore validation rules need not limit
 * their errors, and their lists are short enough to be spread as arguments. Errors of nested calls are not counted.
 */
export function firstErrors(validate: () => FieldError[]): FieldError[] {
  const outer = made;
  const own: FieldError[] = [];
  made = own;
  try {
    return validate();
  } catch (error) {
    if (error instanceof EnoughErrors) return own;
    throw error;
  } finally {
    made = outer;
  }
}

/** firstErrors() counts each created error, so a validation rule must not create errors that it does not return. */
function fieldError(type: FieldErrorType, field: string, body: string): FieldError {
  const error = { type, field: cut(field, MAX_SHOWN_CHARACTERS), body: cut(body, MAX_BODY_CHARACTERS) };
  made?.push(error);
  if (made !== undefined && made.length > MAX_LISTED_ERRORS) throw new EnoughErrors();
  return error;
}

/**
 * Concatenates the lists. Most lists are empty: spreading each of them would allocate an iterator for each of the hundred rules that one
 * object passes.
 */
export function allErrors(...lists: readonly (readonly FieldError[])[]): FieldError[] {
  const errors: FieldError[] = [];
  for (let index = 0; index < lists.length; index++) {
    const list = lists[index] as readonly FieldError[];
    if (list.length > 0) errors.push(...list);
  }
  return errors;
}

export const required = (field: string, detail = ''): FieldError =>
  fieldError('FieldValueRequired', field, `Required value${tail(detail)}`);

export const invalid = (field: string, value: unknown, detail: string): FieldError =>
  fieldError('FieldValueInvalid', field, `Invalid value: ${shown(value)}${tail(detail)}`);

/** An error that does not quote the invalid part: OmitValueType of upstream. */
export const invalidPart = (field: string, detail: string): FieldError =>
  fieldError('FieldValueInvalid', field, `Invalid value: ${detail}`);

export const typeInvalid = (field: string, value: unknown, detail: string): FieldError =>
  fieldError('FieldValueTypeInvalid', field, `Invalid value: ${shown(value)}${tail(detail)}`);

export const notSupported = (field: string, value: unknown, supported: readonly string[]): FieldError =>
  fieldError(
    'FieldValueNotSupported',
    field,
    `Unsupported value: ${shown(value)}${
      supported.length === 0 ? '' : `: supported values: ${supported.map(shown).join(', ')}`
    }`,
  );

export const duplicate = (field: string, value: unknown, detail = ''): FieldError =>
  fieldError('FieldValueDuplicate', field, `Duplicate value: ${shown(value)}${tail(detail)}`);

export const forbidden = (field: string, detail: string): FieldError =>
  fieldError('FieldValueForbidden', field, `Forbidden${tail(detail)}`);

export const notFoundField = (field: string, value: unknown): FieldError =>
  fieldError('FieldValueNotFound', field, `Not found: ${shown(value)}`);

export const tooLong = (field: string, maxBytes: number): FieldError =>
  fieldError('FieldValueTooLong', field, `Too long: may not be more than ${maxBytes} bytes`);

export const tooMany = (field: string, actual: number, max: number): FieldError =>
  fieldError('FieldValueTooMany', field, `Too many: ${actual}: must have at most ${max} item${max === 1 ? '' : 's'}`);

/** Returns, for example, `spec.initContainers[0].name: Required value`. */
export const fieldErrorText = (error: FieldError): string => `${error.field}: ${error.body}`;

/** Returns the errors that a response lists, and their texts joined like upstream's. The last text is `and more` if errors are left out. */
export function listErrors(all: readonly FieldError[]): { errors: FieldError[]; text: string } {
  const errors: FieldError[] = [];
  const texts: string[] = [];
  let bytes = 0;
  for (const error of all.slice(0, MAX_LISTED_ERRORS)) {
    const text = fieldErrorText(error);
    bytes += Buffer.byteLength(text);
    if (bytes > MAX_LISTED_BYTES) break;
    errors.push(error);
    texts.push(text);
  }
  if (all.length > errors.length) texts.push('and more');
  return { errors, text: texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]` };
}

export const fieldErrorCause = (error: FieldError): StatusCause => ({
  reason: error.type,
  message: error.body,
  field: error.field,
});
