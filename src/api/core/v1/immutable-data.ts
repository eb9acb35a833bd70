/** Rules that ConfigMaps and Secrets have in common. Source: pkg/apis/core/validation of v1.33 (behavior and wording). */
import { type FieldError, forbidden } from '../../../machinery/field-error.ts';
import { type JsonValue, jsonEqual } from '../../../machinery/json-value.ts';

/** The maximum total size of the values of one object. */
export const DATA_LIMIT_BYTES = 1024 * 1024;

const IMMUTABLE = 'field is immutable when `immutable` is set';

export function immutableDataErrors<F extends string>(
  object: { immutable?: boolean } & { [K in F]?: JsonValue },
  old: { immutable?: boolean } & { [K in F]?: JsonValue },
  fields: readonly F[],
): FieldError[] {
  if (!old.immutable) return [];
  const changed = fields.filter((field) => !jsonEqual(object[field] ?? {}, old[field] ?? {}));
  return [...(object.immutable ? [] : ['immutable']), ...changed].map((field) => forbidden(field, IMMUTABLE));
}
