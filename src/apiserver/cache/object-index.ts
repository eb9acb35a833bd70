/**
 * An index of the current objects of one resource, which finds objects by key and lists the objects of a namespace in key order. The index
 * of a field is built when a list first selects by a value of the field.
 */
import type { KubeObject } from '../../machinery/meta.ts';
import { FieldIndex, type FieldValue, type IndexedField } from './field-index.ts';
import { type KeyParts, objectKey } from './keys.ts';
import { type Entry, lowerBound, putEntry, removeEntry } from './sorted-entries.ts';

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
  /** The indexes by the names of their fields. */
  readonly #fields = new Map<string, FieldIndex>();

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
    const entry = { key, object };
    putEntry(bucket.entries, entry);
    for (const index of this.#fields.values()) index.replace(key, previous, entry);
    return previous;
  }

  /** Removes the object. Returns the removed object, or undefined if there was none. */
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

  /**
   * Returns the objects of the namespace, or of all namespaces if `namespace` is undefined, in key order. With `where`, returns only the
   * objects with this value of the field.
   */
  list(namespace: string | undefined, where?: FieldValue): KubeObject[] {
    if (where !== undefined) return this.#index(where.by).list(where.value, this.#bucketKey(namespace ?? ''));
    if (namespace === undefined) return this.#buckets.flatMap((bucket) => bucket.entries.map((entry) => entry.object));
    const bucketKey = this.#bucketKey(namespace);
    const bucket = this.#buckets[lowerBound(this.#buckets, bucketKey)];
    return bucket?.key === bucketKey ? bucket.entries.map((entry) => entry.object) : [];
  }

  /** Returns the index of the field. Builds the index if there is none, or only one of another version of the field. */
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
