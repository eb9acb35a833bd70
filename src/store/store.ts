/**
 * The store: etcd's model. One revision counter for all keys; every write of a transaction bears the
 * transaction's revision. lmdb/, memory/ (and later etcd/) implement it; test/contract holds them to one suite.
 *
 * Invariants:
 *  1. When txn() resolves, its writes are durable (lmdb: flushed to disk) and every listener of watch() whose
 *     prefix matches has been called with them.
 *  2. Listeners are called in revision order, each revision of a key exactly once.
 *  3. A revision below the compacted one cannot be read or watched: CompactedError.
 */

export interface StoredValue {
  key: string;
  /** UTF-8 JSON for API objects; the store does not look inside. */
  value: Uint8Array;
  createRevision: number;
  modRevision: number;
}

export interface RangeOptions {
  prefix: string;
  /** Return keys strictly after this one. */
  after?: string;
  /** At most this many; 0 or absent: all. */
  limit?: number;
  /** Read as of this revision; absent: the newest. */
  revision?: number;
}

export interface RangeResult {
  items: StoredValue[];
  /** The revision that was read. */
  revision: number;
  /** How many keys with the prefix come after the last one returned. */
  remaining: number;
}

/** A comparison that must hold: the key's modRevision, 0 for "does not exist". */
export interface Compare {
  key: string;
  modRevision: number;
}

export interface Txn {
  compare: Compare[];
  puts?: { key: string; value: Uint8Array }[];
  deletes?: string[];
}

export type TxnResult =
  | { succeeded: true; revision: number }
  | { succeeded: false; revision: number /** what the compared keys hold now */; current: (StoredValue | undefined)[] };

export type StoreEvent =
  | { type: 'put'; kv: StoredValue; previous: StoredValue | undefined }
  | { type: 'delete'; key: string; revision: number; previous: StoredValue };

export interface Store {
  /** The newest revision. */
  revision(): number;
  get(key: string, revision?: number): Promise<StoredValue | undefined>;
  range(options: RangeOptions): Promise<RangeResult>;
  txn(txn: Txn): Promise<TxnResult>;
  /**
   * Calls the listener for each change of keys with the prefix after `afterRevision` (absent: from now on): first what is in the
   * history, then live. Throws CompactedError where that history is gone. Returns the function that ends it.
   */
  watch(prefix: string, afterRevision: number | undefined, listener: (events: StoreEvent[]) => void): () => void;
  /** Forgets the history up to and including the revision. */
  compact(revision: number): Promise<void>;
  close(): Promise<void>;
}

export class CompactedError extends Error {
  override readonly name = 'CompactedError';
  readonly compactedRevision: number;
  constructor(compactedRevision: number) {
    super(`required revision has been compacted (history before ${compactedRevision} is gone)`);
    this.compactedRevision = compactedRevision;
  }
}
