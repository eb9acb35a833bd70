import { type FieldError, forbidden, invalid, notSupported } from '../machinery/field-error.ts';
import { type JsonValue, jsonEqual } from '../machinery/json-value.ts';
import { IMMUTABLE_TEXT } from '../machinery/object-meta.ts';

/** `old`: the object that is replaced; undefined on create. */
export type Rule<T> = (object: T, old?: T) => FieldError[];

/** Returns undefined if a part of the path, such as `spec.replicas`, is absent. */
export function valueAt(object: unknown, path: string): unknown {
  let value = object;
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}

export const onCreate =
  <T>(rule: (object: T) => FieldError[]): Rule<T> =>
  (object, old) =>
    old === undefined ? rule(object) : [];

export const onUpdate =
  <T>(rule: (object: T, old: T) => FieldError[]): Rule<T> =>
  (object, old) =>
    old === undefined ? [] : rule(object, old);

/** Applies `errorsOf`, such as a function of names.ts, to the value at the path, if the value is present. */
export const at =
  <V>(path: string, errorsOf: (value: V) => string[]): Rule<object> =>
  (object) => {
    const value = valueAt(object, path) as V | undefined;
    return value === undefined ? [] : errorsOf(value).map((text) => invalid(path, value, text));
  };

export const oneOf =
  (path: string, values: readonly string[]): Rule<object> =>
  (object) => {
    const value = valueAt(object, path);
    return value === undefined || values.includes(value as string) ? [] : [notSupported(path, value, values)];
  };

const changed = (path: string, object: unknown, old: unknown): boolean =>
  !jsonEqual((valueAt(object, path) ?? null) as JsonValue, (valueAt(old, path) ?? null) as JsonValue);

/** `text`: upstream's text if it differs from the usual one; the error is then Forbidden instead of Invalid. */
export const immutable = (path: string, text?: string): Rule<object> =>
  onUpdate((object, old) => {
    if (!changed(path, object, old)) return [];
    return [text === undefined ? invalid(path, valueAt(object, path), IMMUTABLE_TEXT) : forbidden(path, text)];
  });

/** Returns upstream's error text if the number is negative. */
export const nonNegative = (value: number): string[] => (value < 0 ? ['must be greater than or equal to 0'] : []);

export const positive = (value: number): string[] => (value <= 0 ? ['must be greater than 0'] : []);
