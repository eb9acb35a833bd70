import type { StoredValue } from '../store.ts';

export class SortedValues {
  readonly #values = new Map<string, StoredValue>();
  readonly #keys: string[] = [];

  get(key: string): StoredValue | undefined {
    return this.#values.get(key);
  }

  has(key: string): boolean {
    return this.#values.has(key);
  }

  set(key: string, kv: StoredValue | undefined): void {
    const present = this.#values.has(key);
    if (kv === undefined) {
      this.#values.delete(key);
      if (present) this.#keys.splice(this.position(key), 1);
      return;
    }
    this.#values.set(key, kv);
    if (!present) this.#keys.splice(this.position(key), 0, key);
  }

  /** `from` is inclusive, `end` exclusive. If `end` is undefined, returns all keys from `from` on. */
  keysBetween(from: string, end: string | undefined): string[] {
    return this.#keys.slice(this.position(from), end === undefined ? this.#keys.length : this.position(end));
  }

  /** Returns the index of the first key that is not less than `key`. */
  position(key: string): number {
    let low = 0;
    let high = this.#keys.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#keys[middle] as string) < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
