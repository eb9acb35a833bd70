/** An index of the objects of one resource by the value of one field. Objects with an empty value are not in the index. */
import type { KubeObject } from '../../machinery/meta.ts';
import { type Entry, lowerBound, putEntry, removeEntry } from './sorted-entries.ts';

/** ObjectIndex compares IndexedFields by identity: a list() with another IndexedField for the same field rebuilds the index. */
export interface IndexedField {
  /** The name in field selectors, such as `spec.nodeName`. */
  field: string;
  /** Must always return the same value for the same object. */
  valueOf(object: KubeObject): string;
}

export interface FieldValue {
  by: IndexedField;
  /** Must not be empty. */
  value: string;
}

export class FieldIndex {
  readonly by: IndexedField;
  readonly #byValue = new Map<string, Entry[]>();

  constructor(by: IndexedField) {
    this.by = by;
  }

  /** `previous` is undefined if the object is new, and `entry` is undefined if the object is deleted. */
  replace(key: string, previous: KubeObject | undefined, entry: Entry | undefined): void {
    const before = previous === undefined ? '' : this.by.valueOf(previous);
    const after = entry === undefined ? '' : this.by.valueOf(entry.object);
    if (before !== after && before !== '') this.#remove(before, key);
    if (entry === undefined || after === '') return;
    const entries = this.#byValue.get(after);
    if (entries === undefined) this.#byValue.set(after, [entry]);
    else putEntry(entries, entry);
  }

  #remove(value: string, key: string): void {
    const entries = this.#byValue.get(value) as Entry[];
    removeEntry(entries, key);
    if (entries.length === 0) this.#byValue.delete(value);
  }

  /** Returns the objects that have the value and whose keys begin with `prefix`, in key order. `prefix` must end with '/'. */
  list(value: string, prefix: string): KubeObject[] {
    const entries = this.#byValue.get(value) ?? [];
    // '0' is the character after '/', so this key sorts after all keys with the prefix.
    const end = `${prefix.slice(0, -1)}0`;
    return entries.slice(lowerBound(entries, prefix), lowerBound(entries, end)).map(({ object }) => object);
  }
}
