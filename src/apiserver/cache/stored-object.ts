/**
 * Objects as the store keeps them (UTF-8 JSON without resourceVersion) and as the cache keeps them
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

/** The approximate size of a value and its field in V8's heap. Measured with objects of many small fields. */
const VALUE_BYTES = 64;

/** The approximate memory of a cached object: its text, both parsed and serialized, and its structure. */
export const heldBytes = (values: number, storedBytes: number): number => 2 * storedBytes + VALUE_BYTES * values;

const knownBytes = new WeakMap<KubeObject, number>();

/** heldBytes of an object that does not change anymore, computed once. */
export function objectBytes(object: KubeObject): number {
  let bytes = knownBytes.get(object);
  if (bytes === undefined) {
    bytes = heldBytes(countValues(object), encodeOnce(object).length);
    knownBytes.set(object, bytes);
  }
  return bytes;
}

/** Counts all values; calls `visit`, if given, for each object and list. Iterating a large map by keys is twice as fast as by values. */
export function countValues(value: unknown, visit?: (value: object) => void): number {
  if (typeof value !== 'object' || value === null) return 1;
  let count = 1;
  if (Array.isArray(value)) for (const item of value) count += countValues(item, visit);
  else for (const key of Object.keys(value)) count += countValues((value as Record<string, unknown>)[key], visit);
  visit?.(value);
  return count;
}

/** A copy of the object at another revision, as in DELETED events. */
export const atRevision = (object: KubeObject, revision: number): KubeObject =>
  Object.freeze({
    ...object,
    metadata: Object.freeze({ ...object.metadata, resourceVersion: String(revision) }),
  });

/** The revision of a cached object. */
export const revisionOf = (object: KubeObject): number => Number(object.metadata.resourceVersion);

/** Freezes plain JSON, so that modifying a shared object fails at once instead of corrupting the cache. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const inner of Array.isArray(value) ? value : Object.values(value)) deepFreeze(inner);
  return Object.freeze(value);
}
