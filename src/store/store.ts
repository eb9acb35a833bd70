/**
 * The store, modeled on etcd. One revision counter for all keys; every write of a transaction has the transaction's
 * revision. lmdb/ and memory/ implement it (later perhaps etcd/) and share one test suite in test/contract.
 *
 * Invariants:
 *  1. When txn() resolves, its writes are durable (lmdb: flushed to disk) and every listener of watch() whose
 *     prefix matches has been called with them.
 *  2. Listeners are called in revision order, each revision of a key exactly once.
 *  3. A revision below the compacted one cannot be read or watched: CompactedError.
 *  4. Every revision has at least one write: a transaction that changes nothing (such as the deletion of a key that does not
 *     exist) does not increase the revision.
 *
 * Keys are ASCII without NUL, 1 to 1024 bytes; a transaction writes a key at most once. A value is not modified after it was
 * passed to the store or returned by it. A listener must not throw.
 */

export interface StoredValue {
  key: string;
  /** UTF-8 JSON for API objects; the store does not interpret it. */
  value: Uint8Array;
  createRevision: number;
  modRevision: number;
}

export interface RangeOptions {
  prefix: string;
  /** Return keys strictly after this one. */
  after?: string;
  /** The maximum number of items; the result also ends once its values have 8 MiB together. 0 or absent: no limit. */
  limit?: number;
  /** Read as of this revision; if absent, the newest. */
  revision?: number;
  /** Aborts a running or queued read of an older revision, which then rejects. */
  signal?: AbortSignal;
}

export interface RangeResult {
  items: StoredValue[];
  /** The revision that was read. */
  revision: number;
  /** How many keys with the prefix come after the last one returned. */
  remaining: number;
}

/** A condition of a transaction: the key's current modRevision; 0 means that the key does not exist. */
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
  | {
      succeeded: false;
      revision: number /** the current values of the compared keys */;
      current: (StoredValue | undefined)[];
    };

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
   * Calls the listener for each change after `afterRevision` (if absent, from now on) of keys with the prefix: first the changes in
   * the history, then new ones. Throws CompactedError if that history has been compacted. Returns a function that ends the watch.
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
    super(`required revision has been compacted (history before ${compactedRevision} is no longer available)`);
    this.compactedRevision = compactedRevision;
  }
}

/**
 * A write could not be made durable, usually because the disk is full. Nothing of the transaction was stored. The store continues to
 * serve reads, deletions and small updates, and accepts other writes as soon as there is space again.
 */
export class StorageFullError extends Error {
  override readonly name = 'StorageFullError';
  readonly directory: string;
  constructor(directory: string, reason: string, whatToDo: string, cause: unknown) {
    super(`cannot write to the store in ${directory}: ${reason}; ${whatToDo}`, { cause });
    this.directory = directory;
  }
}
