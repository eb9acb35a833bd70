/** Checks of single values, used for several parts of a Pod. `path`: the path of the value, for the errors. */
import { allErrors, type FieldError, invalid, notSupported, required } from '../../../../../machinery/field-error.ts';
import {
  inclusiveRangeText,
  type NameErrors,
  portNameErrors,
  portNumberErrors,
} from '../../../../../machinery/names.ts';

export const MAX_INT32 = 2 ** 31 - 1;

export function nameErrors(value: string, path: string, errors: NameErrors): FieldError[] {
  const texts = errors(value);
  return texts.length === 0 ? [] : texts.map((text) => invalid(path, value, text));
}

export const requiredName = (value: string | undefined, path: string, errors: NameErrors): FieldError[] =>
  value ? nameErrors(value, path, errors) : [required(path)];

export const requiredText = (value: string | undefined, path: string): FieldError[] => (value ? [] : [required(path)]);

export const choiceErrors = (value: string | undefined, path: string, choices: readonly string[]): FieldError[] => {
  if (!value) return [required(path)];
  return choices.includes(value) ? [] : [notSupported(path, value, choices)];
};

export const nonNegative = (value: number | undefined, path: string): FieldError[] =>
  value === undefined || value >= 0 ? [] : [invalid(path, value, 'must be greater than or equal to 0')];

export const positive = (value: number | undefined, path: string): FieldError[] =>
  value === undefined || value > 0 ? [] : [invalid(path, value, 'must be greater than 0')];

export const idErrors = (value: number | undefined, path: string): FieldError[] =>
  value === undefined || (value >= 0 && value <= MAX_INT32)
    ? []
    : [invalid(path, value, inclusiveRangeText(0, MAX_INT32))];

export const fileModeErrors = (mode: number | undefined, path: string): FieldError[] =>
  mode === undefined || (mode >= 0 && mode <= 0o777)
    ? []
    : [invalid(path, mode, 'must be a number between 0 and 0777 (octal), both inclusive')];

export const portErrors = (port: number | string | undefined, path: string): FieldError[] =>
  typeof port === 'string'
    ? nameErrors(port, path, portNameErrors)
    : portNumberErrors(port ?? 0).map((text) => invalid(path, port ?? 0, text));

export const hasBacksteps = (value: string): boolean => value.includes('..') && value.split('/').includes('..');

export const noBacksteps = (value: string, path: string): FieldError[] =>
  hasBacksteps(value) ? [invalid(path, value, "must not contain '..'")] : [];

export const descendingPath = (value: string, path: string): FieldError[] =>
  allErrors(value.startsWith('/') ? [invalid(path, value, 'must be a relative path')] : [], noBacksteps(value, path));

/** Volumes store internal files as `..data`. Like upstream, a value that starts with '../' gets only the error of descendingPath(). */
export const unreservedPath = (value: string, path: string): FieldError[] =>
  allErrors(
    descendingPath(value, path),
    value.startsWith('..') && !value.startsWith('../') ? [invalid(path, value, "must not start with '..'")] : [],
  );
