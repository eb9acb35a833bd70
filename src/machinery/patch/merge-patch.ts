/**
 * Applies a JSON merge patch: objects are merged, null deletes a field, and any other value replaces the field.
 * The inputs are not modified; the result may share parts with them. Source: RFC 7386.
 */
import { isJsonObject, type JsonObject, type JsonValue, setOwn } from '../json-value.ts';
import { badRequest } from '../status.ts';

function merge(target: JsonValue | undefined, patch: JsonValue): JsonValue {
  if (!isJsonObject(patch)) return patch;
  const result: JsonObject = isJsonObject(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else setOwn(result, key, merge(Object.hasOwn(result, key) ? result[key] : undefined, value));
  }
  return result;
}

/** Throws ApiError (BadRequest) if the patch is not an object. */
export function applyMergePatch(object: JsonObject, patch: unknown): JsonObject {
  if (!isJsonObject(patch)) throw badRequest('Invalid JSON Patch');
  return merge(object, patch) as JsonObject;
}
