import type { KubeObject } from '../../machinery/meta.ts';

export interface Entry {
  key: string;
  object: KubeObject;
}

/** Returns the index of the first entry whose key is not less than `key`. */
export function lowerBound(entries: readonly { key: string }[], key: string): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((entries[middle] as { key: string }).key < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function putEntry(entries: Entry[], entry: Entry): void {
  const at = lowerBound(entries, entry.key);
  if (entries[at]?.key === entry.key) entries[at] = entry;
  else entries.splice(at, 0, entry);
}

/** The entry must exist. */
export function removeEntry(entries: Entry[], key: string): void {
  entries.splice(lowerBound(entries, key), 1);
}
