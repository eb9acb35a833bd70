/**
 * The current objects of one resource, by key and by namespace. A list that selects by a value of a field builds the index of this field.
 */
import type { KubeObject } from '../../machinery/meta.ts';
import { FieldIndex, type FieldValue, type IndexedField } from './field-index.ts';
import { type KeyParts, objectKey } from './keys.ts';
import { type Entry, lowerBound, putEntry, removeEntry } from './sorted-entries.ts';

interface Bucket {
  /** Ends with '/', so that sorting the buckets also sorts their entries. */
  key: string;
  entries: Entry[];
}

export class ObjectIndex {
  readonly #prefix: string;
  readonly #byKey = new Map<string, KubeObject>();
  readonly #buckets: Bucket[] = [];
  readonly #fields = new Map<string, FieldIndex>();

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  get(key: string): KubeObject | undefined {
    return this.#byKey.get(key);
  }

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
    const entry = { key, object };
    putEntry(bucket.entries, entry);
    for (const index of this.#fields.values()) index.replace(key, previous, entry);
    return previous;
  }

  delete(key: string, parts: KeyParts): KubeObject | undefined {
    const previous = this.#byKey.get(key);
    if (previous === undefined) return undefined;
    this.#byKey.delete(key);
    const at = lowerBound(this.#buckets, this.#bucketKey(parts.namespace));
    const entries = (this.#buckets[at] as Bucket).entries;
    removeEntry(entries, key);
    if (entries.length === 0) this.#buckets.splice(at, 1);
    for (const index of this.#fields.values()) index.replace(key, previous, undefined);
    return previous;
  }

  /** Returns the objects in key order, of all namespaces if `namespace` is undefined. */
  list(namespace: string | undefined, where?: FieldValue): KubeObject[] {
    if (where !== undefined) return this.#index(where.by).list(where.value, this.#bucketKey(namespace ?? ''));
    if (namespace === undefined) return this.#buckets.flatMap((bucket) => bucket.entries.map((entry) => entry.object));
    const bucketKey = this.#bucketKey(namespace);
    const bucket = this.#buckets[lowerBound(this.#buckets, bucketKey)];
    return bucket?.key === bucketKey ? bucket.entries.map((entry) => entry.object) : [];
  }

  #index(by: IndexedField): FieldIndex {
    let index = this.#fields.get(by.field);
    if (index?.by !== by) {
      index = new FieldIndex(by);
      for (const { entries } of this.#buckets) {
        for (const entry of entries) index.replace(entry.key, undefined, entry);
      }
      this.#fields.set(by.field, index);
    }
    return index;
  }

  #bucketKey(namespace: string): string {
    return namespace === '' ? this.#prefix : objectKey(this.#prefix, namespace, '');
  }
}
