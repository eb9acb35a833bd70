/** An index of the current objects of one resource, which finds objects by key and lists those of a namespace in key order. */
import type { KubeObject } from '../../machinery/meta.ts';
import { type KeyParts, objectKey } from './keys.ts';

interface Entry {
  key: string;
  object: KubeObject;
}

/** Returns the index of the first entry whose key is not less than `key`. `entries` must be sorted by key. */
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
  /** The prefix that the keys of the entries share. It ends with '/', so that sorting the buckets also sorts their entries. */
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

  /** Adds or replaces the object. Returns the previous object, or undefined if there was none. */
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

  /** Returns the deleted object, or undefined if there was none. */
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

  /** Returns the objects of the namespace, or of all namespaces if it is undefined, in key order. */
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
