/**
 * The store: etcd's model. One revision counter for all keys; every write of a transaction bears the
 * transaction's revision. lmdb/, memory/ (and later etcd/) implement it; test/contract holds them to one suite.
 *
 * Invariants:
 *  1. When txn() resolves, its writes are durable (lmdb: flushed to disk) and every listener of watch() whose
 *     prefix matches has been called with them.
 *  2. Listeners are called in revision order, each revision of a key exactly once.
 *  3. A revision below the compacted one cannot be read or watched: CompactedError.
 *  4. Every revision has at least one write: a transaction that changes nothing (a delete of what is not there)
 *     leaves the revision as it is.
 *
 * Keys are ASCII without NUL, 1 to 1024 bytes; a transaction writes a key once. Values given to and got from a store
 * are not modified afterwards. A listener must not throw.
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
  /** At most this many, and no more once their values have 8 MiB together; 0 or absent: all. */
  limit?: number;
  /** Read as of this revision; absent: the newest. */
  revision?: number;
  /** Ends a read of an older revision that goes on or waits for others: it rejects. */
  signal?: AbortSignal;
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

/**
 * A write could not be made durable, mostly because the disk is full. Nothing of the transaction was stored. The store goes on reading,
 * deleting and making small updates, and writes as soon as there is space again.
 */
export class StorageFullError extends Error {
  override readonly name = 'StorageFullError';
  readonly directory: string;
  constructor(directory: string, reason: string, whatToDo: string, cause: unknown) {
    super(`cannot write to the store in ${directory}: ${reason}; ${whatToDo}`, { cause });
    this.directory = directory;
  }
}
