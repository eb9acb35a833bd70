/**
 * Converts objects between the form in the store (UTF-8 JSON without resourceVersion) and the form in the cache (frozen, with the revision
 * of the last write as resourceVersion), and estimates their memory.
 */
import { encodeOnce } from '../../machinery/encode.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import type { StoredValue } from '../../store/store.ts';
import { notJson } from '../encryption/encrypted-store.ts';

const decoder = new TextDecoder();

export function storedText(object: KubeObject): string {
  if (object.metadata.resourceVersion === undefined) return JSON.stringify(object);
  const { resourceVersion: _, ...metadata } = object.metadata;
  return JSON.stringify({ ...object, metadata });
}

const HEAD = /^\{"(?:apiVersion|kind)":"[^"\\]*","(?:apiVersion|kind)":"[^"\\]*","metadata":\{/;

/**
 * Adds the revision as resourceVersion to the stored JSON text of an object. Returns undefined if the text does not begin with apiVersion,
 * kind and metadata.
 */
export function textAtRevision(stored: string, revision: number): string | undefined {
  const [head] = HEAD.exec(stored) ?? [];
  return head && `${head}"resourceVersion":"${revision}",${stored.slice(head.length)}`;
}

/** The objects from which stored values were encoded, by value, so that the watch cache need not parse the values. */
const contents = new WeakMap<Uint8Array, KubeObject>();

/**
 * Makes decodeStored() reuse `object`, and later freeze its content, instead of parsing `value`, the JSON of the object. Has no effect if
 * the parsed JSON could differ from the object. Returns the countValues() of the object.
 */
export function giveContent(value: Uint8Array, object: KubeObject): number {
  const count = countJson(object);
  if (Number.isNaN(count)) return countValues(object);
  contents.set(value, object);
  return count;
}

/** Returns the countValues() of a value, or NaN if parsing the JSON of the value could return another value. */
function countJson(value: unknown): number {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return 1;
  if (typeof value === 'number') return Number.isFinite(value) && !Object.is(value, -0) ? 1 : Number.NaN;
  if (typeof value !== 'object') return Number.NaN;
  let count = 1;
  if (Array.isArray(value)) for (let index = 0; index < value.length; index++) count += countJson(value[index]);
  else if (Object.getPrototypeOf(value) !== Object.prototype) return Number.NaN;
  else for (const key in value) count += countJson((value as Record<string, unknown>)[key]);
  return count;
}

/**
 * Returns the object, deeply frozen and with its revision as resourceVersion. Throws an UnreadableValueError if the value cannot be
 * decrypted or is not JSON.
 */
export function decodeStored(stored: StoredValue): KubeObject {
  const content = contents.get(stored.value);
  const object = content === undefined ? parse(stored) : { ...content, metadata: { ...content.metadata } };
  object.metadata.resourceVersion = String(stored.modRevision);
  knownBytes.set(object, heldBytes(countValues(object, Object.freeze), stored.value.length));
  return object;
}

function parse({ key, value }: StoredValue): KubeObject {
  const text = decoder.decode(value);
  try {
    return JSON.parse(text) as KubeObject;
  } catch {
    throw notJson(key, value);
  }
}

/** The approximate size of a value and its field in V8's heap, measured with objects that have many small fields. */
const VALUE_BYTES = 64;

/**
 * Returns the approximate memory of a cached object in bytes: its strings, its serialized text, and its structure. `values` is the
 * countValues() of the object, and `storedBytes` is the length of its JSON.
 */
export const heldBytes = (values: number, storedBytes: number): number => 2 * storedBytes + VALUE_BYTES * values;

/** Returns the approximate memory of a JSON value in bytes, without its strings. */
export const structureBytes = (value: unknown): number => VALUE_BYTES * countValues(value);

/** Returns the approximate memory of an object in bytes, without its serialized text. Caches nothing, so the object may change later. */
export const uncachedBytes = (object: KubeObject): number => JSON.stringify(object).length + structureBytes(object);

const knownBytes = new WeakMap<KubeObject, number>();

/** The object must be immutable, because the result is cached. */
export function objectBytes(object: KubeObject): number {
  let bytes = knownBytes.get(object);
  if (bytes === undefined) {
    bytes = heldBytes(countValues(object), encodeOnce(object).length);
    knownBytes.set(object, bytes);
  }
  return bytes;
}

/** Returns the number of values in the JSON value, including `value` itself. Calls `visit` for each object and list. */
export function countValues(value: unknown, visit?: (value: object) => void): number {
  if (typeof value !== 'object' || value === null) return 1;
  let count = 1;
  // The loops allocate nothing, unlike the iterator of a frozen list and Object.keys(). The objects are JSON and inherit no fields.
  if (Array.isArray(value))
    for (let index = 0; index < value.length; index++) count += countValues(value[index], visit);
  else for (const key in value) count += countValues((value as Record<string, unknown>)[key], visit);
  visit?.(value);
  return count;
}

/** Returns a frozen copy with `revision` as its resourceVersion. The copy shares all fields but the metadata with `object`. */
export const atRevision = (object: KubeObject, revision: number): KubeObject =>
  Object.freeze({
    ...object,
    metadata: Object.freeze({ ...object.metadata, resourceVersion: String(revision) }),
  });

export const revisionOf = (object: KubeObject): number => Number(object.metadata.resourceVersion);
