/** The rules with which declarations of kinds validate objects. */
import { type FieldError, forbidden, invalid, notSupported } from '../machinery/field-error.ts';
import { type JsonValue, jsonEqual } from '../machinery/json-value.ts';
import { IMMUTABLE_TEXT } from '../machinery/object-meta.ts';

/** Returns the errors of an object. `old`: the object that is replaced; undefined on create. */
export type Rule<T> = (object: T, old?: T) => FieldError[];

/** Returns the value at a path of field names, such as `spec.replicas`; undefined if a part of the path is absent. */
export function valueAt(object: unknown, path: string): unknown {
  let value = object;
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}

/** Applies the rule only to new objects. */
export const onCreate =
  <T>(rule: (object: T) => FieldError[]): Rule<T> =>
  (object, old) =>
    old === undefined ? rule(object) : [];

/** Applies the rule only to updates. */
export const onUpdate =
  <T>(rule: (object: T, old: T) => FieldError[]): Rule<T> =>
  (object, old) =>
    old === undefined ? [] : rule(object, old);

/** Applies `errorsOf` to the value at the path, if the value is present. `errorsOf` returns texts such as those of names.ts. */
export const at =
  <V>(path: string, errorsOf: (value: V) => string[]): Rule<object> =>
  (object) => {
    const value = valueAt(object, path) as V | undefined;
    return value === undefined ? [] : errorsOf(value).map((text) => invalid(path, value, text));
  };

/** Requires that the value at the path, if it is present, is one of the given values. */
export const oneOf =
  (path: string, values: readonly string[]): Rule<object> =>
  (object) => {
    const value = valueAt(object, path);
    return value === undefined || values.includes(value as string) ? [] : [notSupported(path, value, values)];
  };

const changed = (path: string, object: unknown, old: unknown): boolean =>
  !jsonEqual((valueAt(object, path) ?? null) as JsonValue, (valueAt(old, path) ?? null) as JsonValue);

/**
 * Rejects updates that change the value at the path. `text`: upstream's text if it differs from the usual one; the error is then Forbidden
 * instead of Invalid.
 */
export const immutable = (path: string, text?: string): Rule<object> =>
  onUpdate((object, old) => {
    if (!changed(path, object, old)) return [];
    return [text === undefined ? invalid(path, valueAt(object, path), IMMUTABLE_TEXT) : forbidden(path, text)];
  });

/** Returns upstream's error text if the number is negative. */
export const nonNegative = (value: number): string[] => (value < 0 ? ['must be greater than or equal to 0'] : []);

export const positive = (value: number): string[] => (value <= 0 ? ['must be greater than 0'] : []);
