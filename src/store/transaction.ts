import { eventOf } from './history.ts';
import type { RangeOptions, StoredValue, StoreEvent, Txn, TxnResult } from './store.ts';
import { CompactedError } from './store.ts';

const MAX_KEY_BYTES = 1024;
const KEY = /^[\x01-\x7f]+$/;

export const isKey = (key: string): boolean => key.length <= MAX_KEY_BYTES && KEY.test(key);

/**
 * Returns a key that sorts like `key`, which may be too long, or contain NUL or characters beyond ASCII. Apart from keys that contain DEL,
 * the same valid keys come after the result as after `key`.
 */
export function comparableKey(key: string): string {
  if (isKey(key)) return key;
  const start = key.slice(0, MAX_KEY_BYTES);
  const valid = /^[\x01-\x7f]*/.exec(start)?.[0] ?? '';
  // NUL sorts before every character of a valid key; the other invalid characters sort after all of them.
  return valid.length === start.length || start[valid.length] === '\0' ? valid : `${valid}\x7f`;
}

/** Throws an Error if a key to write is invalid or occurs twice. An invalid key in `compare` counts as a key that does not exist. */
export function checkTxn(txn: Txn): void {
  const written = new Set<string>();
  for (const key of [...(txn.puts ?? []).map((put) => put.key), ...(txn.deletes ?? [])]) {
    if (!isKey(key)) throw new Error(`bad key in a transaction: ${JSON.stringify(key)}`);
    if (written.has(key)) throw new Error(`duplicate key in a transaction: ${JSON.stringify(key)}`);
    written.add(key);
  }
}

/**
 * Returns the outcome of the transaction and the events that it causes. `revision`: the newest revision. `lookup`: returns the current
 * value of a key; undefined if the key does not exist.
 */
export function evaluate(
  txn: Txn,
  revision: number,
  lookup: (key: string) => StoredValue | undefined,
): { result: TxnResult; events: StoreEvent[] } {
  if (txn.compare.some(({ key, modRevision }) => (lookup(key)?.modRevision ?? 0) !== modRevision)) {
    return { result: { succeeded: false, revision }, events: [] };
  }
  const next = revision + 1;
  const events: StoreEvent[] = [];
  for (const { key, value } of txn.puts ?? []) {
    const previous = lookup(key);
    const kv = { key, value, createRevision: previous?.createRevision ?? next, modRevision: next };
    events.push(eventOf(key, next, previous, kv));
  }
  for (const key of txn.deletes ?? []) {
    const previous = lookup(key);
    if (previous !== undefined) events.push(eventOf(key, next, previous, undefined));
  }
  return { result: { succeeded: true, revision: events.length === 0 ? revision : next }, events };
}

export const eventKey = (event: StoreEvent): string => (event.type === 'put' ? event.kv.key : event.key);
export const eventRevision = (event: StoreEvent): number =>
  event.type === 'put' ? event.kv.modRevision : event.revision;
export const eventValue = (event: StoreEvent): StoredValue | undefined => (event.type === 'put' ? event.kv : undefined);

/**
 * Throws a CompactedError if the revision is older than the compacted revision, and another error if it is newer than the newest revision.
 * An undefined `revision` means the newest revision, which can always be read.
 */
export function checkRevision(revision: number | undefined, compacted: number, newest: number): void {
  if (revision === undefined) return;
  if (revision < compacted) throw new CompactedError(compacted);
  if (revision > newest) throw new Error(`required revision ${revision} is a future revision, the newest is ${newest}`);
}

/** Returns the first string that sorts after all keys with the prefix; undefined for the empty prefix. */
export function prefixEnd(prefix: string): string | undefined {
  if (prefix === '') return undefined;
  const last = prefix.length - 1;
  return prefix.slice(0, last) + String.fromCharCode(prefix.charCodeAt(last) + 1);
}

/** The result of a read with a limit ends when its values have this many bytes in total. */
const PAGE_BYTES = 8 * 1024 * 1024;

/**
 * Skips entries without a value. Without a limit (0), returns all values; otherwise at most `limit`, and none after the values have
 * PAGE_BYTES in total.
 */
export function firstValues<Entry>(
  entries: Iterable<Entry>,
  read: (entry: Entry) => StoredValue | undefined,
  limit = 0,
): StoredValue[] {
  const items: StoredValue[] = [];
  let bytes = 0;
  for (const entry of entries) {
    const kv = read(entry);
    if (kv === undefined) continue;
    items.push(kv);
    bytes += kv.value.length;
    if (limit > 0 && (items.length === limit || bytes >= PAGE_BYTES)) break;
  }
  return items;
}

export interface NewestState {
  /** The keys of the range in ascending order. The caller iterates over them only as far as necessary. */
  keys: Iterable<string>;
  read(key: string): StoredValue | undefined;
  has(key: string): boolean;
  countAfter(key: string): number;
}

/**
 * Reads a range of an older state, by undoing later changes in the newest state. Reads only the values that it returns. `changed`: the keys
 * that have changed after the older state, with their older values (undefined: the key did not exist).
 */
export function rewoundRange(
  newest: NewestState,
  changed: Map<string, StoredValue | undefined>,
  { after, limit }: RangeOptions,
): { items: StoredValue[]; remaining: number } {
  const changedKeys = [...changed.keys()].filter((key) => after === undefined || key > after).sort();
  const unchanged = keysWithout(newest.keys, changed);
  const read = (key: string): StoredValue | undefined => (changed.has(key) ? changed.get(key) : newest.read(key));
  const items = firstValues(merged(unchanged, changedKeys), read, limit);
  const last = limit ? items.at(-1)?.key : undefined;
  if (last === undefined) return { items, remaining: 0 };
  let remaining = newest.countAfter(last);
  for (const key of changedKeys) {
    if (key > last) remaining += Number(changed.get(key) !== undefined) - Number(newest.has(key));
  }
  return { items, remaining };
}

function* keysWithout(keys: Iterable<string>, changed: ReadonlyMap<string, unknown>): Generator<string> {
  for (const key of keys) if (!changed.has(key)) yield key;
}

/** The sequences are ascending and have no key in common. */
function* merged(left: Iterable<string>, right: readonly string[]): Generator<string> {
  let at = 0;
  for (const key of left) {
    while (at < right.length && (right[at] as string) < key) yield right[at++] as string;
    yield key;
  }
  yield* right.slice(at);
}
