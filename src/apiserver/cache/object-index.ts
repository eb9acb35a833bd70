/**
 * The current objects of one resource: found by key, and listed by namespace in the order of their keys.
 */
import type { KubeObject } from '../../machinery/meta.ts';
import { type KeyParts, objectKey } from './keys.ts';

interface Entry {
  key: string;
  object: KubeObject;
}

/** The index of the key in sorted entries, or of the first entry after it. */
function lowerBound(entries: readonly { key: string }[], key: string): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((entries[middle] as { key: string }).key < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The objects of one namespace, sorted by key. */
interface Bucket {
  /** The prefix of its keys, which ends with '/', so that buckets sort as their keys do. */
  key: string;
  entries: Entry[];
}

export class ObjectIndex {
  readonly #prefix: string;
  readonly #byKey = new Map<string, KubeObject>();
  readonly #buckets: Bucket[] = [];

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  get(key: string): KubeObject | undefined {
    return this.#byKey.get(key);
  }

  /** Returns the previous object. */
  set(key: string, parts: KeyParts, object: KubeObject): KubeObject | undefined {
    const previous = this.#byKey.get(key);
    this.#byKey.set(key, object);
    const bucketKey = this.#bucketKey(parts.namespace);
    const at = lowerBound(this.#buckets, bucketKey);
    let bucket = this.#buckets[at];
    if (bucket?.key !== bucketKey) {
      bucket = { key: bucketKey, entries: [] };
      this.#buckets.splice(at, 0, bucket);
    }
    const index = lowerBound(bucket.entries, key);
    bucket.entries.splice(index, previous === undefined ? 0 : 1, { key, object });
    return previous;
  }

  /** Returns the deleted object. */
  delete(key: string, parts: KeyParts): KubeObject | undefined {
    const previous = this.#byKey.get(key);
    if (previous === undefined) return undefined;
    this.#byKey.delete(key);
    const at = lowerBound(this.#buckets, this.#bucketKey(parts.namespace));
    const entries = (this.#buckets[at] as Bucket).entries;
    entries.splice(lowerBound(entries, key), 1);
    if (entries.length === 0) this.#buckets.splice(at, 1);
    return previous;
  }

  /** The objects of a namespace, or of all if it is undefined, in the order of their keys. */
  list(namespace: string | undefined): KubeObject[] {
    if (namespace === undefined) return this.#buckets.flatMap((bucket) => bucket.entries.map((entry) => entry.object));
    const bucketKey = this.#bucketKey(namespace);
    const bucket = this.#buckets[lowerBound(this.#buckets, bucketKey)];
    return bucket?.key === bucketKey ? bucket.entries.map((entry) => entry.object) : [];
  }

  #bucketKey(namespace: string): string {
    return namespace === '' ? this.#prefix : objectKey(this.#prefix, namespace, '');
  }
}
