/**
 * The interface of the store, modeled on etcd. All keys share one revision counter, and all writes of a transaction have the same revision.
 *
 * Invariants:
 *  1. When txn() resolves, its writes are durable (lmdb: flushed to the disk), later calls of revision(), get() and range() include them,
 *     and the result has their revision. Listeners of watch() may get the writes later: code that reads the data that a listener collects
 *     must wait until the listener has been called with the revision.
 *  2. A listener is called in the order of revisions, and each change of a key with its prefix is in exactly one call. All changes of a
 *     revision are in the same call.
 *  3. Revisions older than the compacted revision cannot be read or watched; the call fails with a CompactedError.
 *  4. A transaction increases the revision only if it writes or deletes a key. The deletion of a key that does not exist does not count; a
 *     put of the same value does.
 *
 * Keys are ASCII strings of 1 to 1024 bytes without NUL. A transaction writes each key at most once. Callers must not modify a value that
 * they have passed to the store or received from it. A listener must not throw.
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
  /** Return only keys that come after this key. */
  after?: string;
  /** The maximum number of items. With a limit, the result also ends once its values have 8 MiB in total. 0 or absent: no limit. */
  limit?: number;
  /** Whether `remaining` may be 1 instead of any larger number, because counting takes time for each key. The default is false. */
  remainingAsFlag?: boolean;
  /** The revision of the state to read. Absent: the newest revision. */
  revision?: number;
  /** Cancels reads of older revisions by the lmdb store. Other reads ignore the signal. */
  signal?: AbortSignal;
}

export interface RangeResult {
  items: StoredValue[];
  revision: number;
  /** The number of keys with the prefix that come after the last returned key; 0 if no key is returned. */
  remaining: number;
}

/** The modRevision that the key must have. 0: the key must not exist. */
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
      revision: number;
    };

export type StoreEvent =
  | { type: 'put'; kv: StoredValue; previous: StoredValue | undefined }
  | { type: 'delete'; key: string; revision: number; previous: StoredValue };

export interface Store {
  /** Returns the newest revision; 0 in a new store. */
  revision(): number;
  get(key: string, revision?: number): Promise<StoredValue | undefined>;
  range(options: RangeOptions): Promise<RangeResult>;
  txn(txn: Txn): Promise<TxnResult>;
  /**
   * Calls the listener for each change of a key with the prefix after `afterRevision` (undefined: after revision()): first for the changes
   * in the history, then for new changes. May call the listener before watch() returns. Throws a CompactedError if the history after
   * `afterRevision` is incomplete. The returned function ends the watch: the listener is not called again.
   */
  watch(prefix: string, afterRevision: number | undefined, listener: (events: StoreEvent[]) => void): () => void;
  /** Deletes the history up to and including the revision. Rejects if the revision is newer than the newest one. */
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
 * The store could not write to the disk, usually because the disk is full. The failed transaction has changed nothing. On a full disk, an
 * open store continues to serve reads, deletions and small updates, and accepts other writes as soon as there is enough space again.
 */
export class StorageFullError extends Error {
  override readonly name = 'StorageFullError';
  readonly directory: string;
  constructor(directory: string, reason: string, whatToDo: string, cause: unknown) {
    super(`cannot write to the store in ${directory}: ${reason}; ${whatToDo}`, { cause });
    this.directory = directory;
  }
}
