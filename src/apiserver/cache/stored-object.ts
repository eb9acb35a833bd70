/**
 * Objects as the store keeps them (UTF-8 JSON without resourceVersion) and as the cache holds them
 * (frozen, with the revision of their last write as resourceVersion).
 */
import { encodeOnce } from '../../machinery/encode.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import type { StoredValue } from '../../store/store.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function encodeStored(object: KubeObject): Uint8Array {
  const { resourceVersion: _, ...metadata } = object.metadata;
  return encoder.encode(JSON.stringify({ ...object, metadata }));
}

export function decodeStored(stored: StoredValue): KubeObject {
  const object = JSON.parse(decoder.decode(stored.value)) as KubeObject;
  object.metadata.resourceVersion = String(stored.modRevision);
  knownBytes.set(object, heldBytes(countValues(object, Object.freeze), stored.value.length));
  return object;
}

/** What each value in an object takes in V8's heap, about, with its field. Measured with objects of many small fields. */
const VALUE_BYTES = 64;

/** About how much memory an object takes that the cache holds: its text, as values and as it is sent, and its structure. */
export const heldBytes = (values: number, storedBytes: number): number => 2 * storedBytes + VALUE_BYTES * values;

const knownBytes = new WeakMap<KubeObject, number>();

/** heldBytes of an object that does not change any more, computed once. */
export function objectBytes(object: KubeObject): number {
  let bytes = knownBytes.get(object);
  if (bytes === undefined) {
    bytes = heldBytes(countValues(object), encodeOnce(object).length);
    knownBytes.set(object, bytes);
  }
  return bytes;
}

/** Calls `visit` for each object and list, where it is given. A large map is walked twice as fast by its keys as by its values. */
export function countValues(value: unknown, visit?: (value: object) => void): number {
  if (typeof value !== 'object' || value === null) return 1;
  let count = 1;
  if (Array.isArray(value)) for (const item of value) count += countValues(item, visit);
  else for (const key of Object.keys(value)) count += countValues((value as Record<string, unknown>)[key], visit);
  visit?.(value);
  return count;
}

/** The same object at another revision: what a DELETED event carries. */
export const atRevision = (object: KubeObject, revision: number): KubeObject =>
  Object.freeze({
    ...object,
    metadata: Object.freeze({ ...object.metadata, resourceVersion: String(revision) }),
  });

/** The revision of an object of the cache. */
export const revisionOf = (object: KubeObject): number => Number(object.metadata.resourceVersion);

/** Freezes plain JSON: whoever modifies a shared object fails at once instead of corrupting the cache. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const inner of Array.isArray(value) ? value : Object.values(value)) deepFreeze(inner);
  return Object.freeze(value);
}
