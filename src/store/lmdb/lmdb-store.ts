/**
 * The embedded store: an LMDB environment, a folder that only one process uses at a time. Transactions that arrive during a commit share
 * the next commit, so that concurrent writers share one flush to the disk.
 *
 * Invariants:
 *  1. There is one commit at a time, evaluated on the result of the previous commit. A failed commit has changed nothing.
 *  2. The revision counter, the current values and the history change in the same LMDB transaction.
 *  3. A commit starts only if the data file has room for it (data-file.ts). On a full disk, each write gets a commit of its own, so that
 *     only a write that needs space fails. Deletions and small updates continue; the history is deleted to make room for them.
 *  4. The history has at most `historyRevisions` revisions and a limited number of bytes; each commit deletes the excess.
 */
import { oneAtATime } from '../../platform/work-in-turns.ts';
import { addStateBefore, eventsOf, type HistoryRecord } from '../history.ts';
import {
  CompactedError,
  type RangeOptions,
  type RangeResult,
  type StorageFullError,
  type StoredValue,
  type StoreEvent,
  type Txn,
  type TxnResult,
} from '../store.ts';
import { checkRevision, checkTxn, isKey, rewoundRange } from '../transaction.ts';
import { createWatchers } from '../watchers.ts';
import { type Batch, type Before, commit, commitOf, evaluateBatch, needsLittle, type Waiting } from './batch.ts';
import { commitFailure, diskFull } from './commit-failure.ts';
import { copyTables } from './copy-file.ts';
import type { FileStore, LmdbStoreOptions } from './file-store.ts';
import { HistorySize } from './history-size.ts';
import { type Past, readPast } from './past.ts';
import {
  newestState,
  openTables,
  pageUse,
  type ReadTransaction,
  readRange,
  readValue,
  type Tables,
  toRecord,
} from './tables.ts';

/**
 * Creates the store if it does not exist. Rejects with a StorageFullError on a full disk, and with a UserError if the folder cannot be
 * used.
 */
export async function openLmdbStore(options: LmdbStoreOptions): Promise<FileStore> {
  const store = new LmdbStore(options, await openTables(options.directory));
  store.load();
  return store;
}

const MAX_SHARED = 500;
const FORGET_AT_ONCE = 500;

class LmdbStore implements FileStore {
  private readonly options: LmdbStoreOptions;
  private readonly directory: string;
  private tables: Tables;
  private readonly watchers = createWatchers();
  private waiting: Waiting[] = [];
  private writing: Promise<void> | undefined;
  /** Reads of older revisions run one at a time, because each may use as much memory as the history has bytes. */
  private readonly pastReads = oneAtATime();
  private readonly historySize = new HistorySize();
  private newest = 0;
  private compacted = 0;
  private closed = false;
  private copying: Promise<unknown> = Promise.resolve();

  constructor(options: LmdbStoreOptions, tables: Tables) {
    this.options = options;
    this.directory = options.directory;
    this.tables = tables;
  }

  load(): void {
    this.newest = this.tables.meta.get('revision') ?? 0;
    this.compacted = this.tables.meta.get('compacted') ?? 0;
    for (const revision of this.tables.history.getKeys()) {
      this.historySize.load(revision, this.tables.history.getBinaryFast(revision)?.length ?? 0);
    }
  }

  revision(): number {
    return this.newest;
  }

  async get(key: string, revision?: number): Promise<StoredValue | undefined> {
    this.checkOpen();
    if (revision === undefined) return this.read(key);
    return this.snapshotOf({ revision, prefix: key }, (before, transaction) =>
      before.has(key) ? before.get(key) : this.read(key, transaction),
    );
  }

  async range(options: RangeOptions): Promise<RangeResult> {
    // LMDB fails on a prefix that is not a valid key. No stored key has such a prefix.
    const isEmpty = options.prefix !== '' && !isKey(options.prefix);
    const present = this.snapshot((transaction, newest, compacted) => {
      const revision = options.revision ?? newest;
      checkRevision(revision, compacted, newest);
      if (revision !== newest) return undefined;
      return {
        ...(isEmpty ? { items: [], remaining: 0 } : readRange(this.tables.current, options, transaction)),
        revision,
      };
    });
    const { revision = this.newest, prefix } = options;
    if (present !== undefined) return present;
    return this.snapshotOf({ revision, prefix, signal: options.signal }, (changed, transaction) => ({
      ...(isEmpty
        ? { items: [], remaining: 0 }
        : rewoundRange(newestState(this.tables.current, options, transaction), changed, options)),
      revision,
    }));
  }

  async txn(txn: Txn): Promise<TxnResult> {
    checkTxn(txn);
    return new Promise((resolve, reject) => this.enqueue({ kind: 'txn', txn, resolve, reject }));
  }

  async compact(revision: number): Promise<void> {
    return new Promise((resolve, reject) => this.enqueue({ kind: 'compact', revision, resolve, reject }));
  }

  watch(prefix: string, afterRevision: number | undefined, listener: (events: StoreEvent[]) => void): () => void {
    if (afterRevision === undefined) return this.watchers.add(prefix, this.newest, listener);
    const { missed, newest } = this.snapshot((transaction, newest, compacted) => {
      if (afterRevision < compacted) throw new CompactedError(compacted);
      const records = this.recordsAfter(afterRevision, transaction);
      return { missed: eventsOf(records, prefix, (key) => this.read(key, transaction)), newest };
    });
    const stop = this.watchers.add(prefix, Math.max(afterRevision, newest), listener);
    if (missed.length > 0) listener(missed);
    return stop;
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    await Promise.allSettled([this.writing, this.copying]);
    await this.tables.root.close();
  }

  copyTo(folder: string): Promise<void> {
    this.checkOpen();
    const copied = copyTables(this.tables, folder);
    this.copying = Promise.allSettled([this.copying, copied]);
    return copied;
  }

  private read(key: string, transaction?: ReadTransaction): StoredValue | undefined {
    return readValue(this.tables.current, key, transaction);
  }

  private recordsAfter(revision: number, transaction: ReadTransaction): HistoryRecord[] {
    const rows = this.tables.history.getRange({ start: revision + 1, transaction });
    return [...rows].map(({ key, value }) => toRecord(key, value));
  }

  /** Calls `body` with the values at `revision` of the keys with the prefix that changed later, and a transaction for the newest state. */
  private async snapshotOf<T>(
    { revision, prefix, signal }: { revision: number; prefix: string; signal?: AbortSignal | undefined },
    body: (changed: Past['changed'], transaction: ReadTransaction) => T,
  ): Promise<T> {
    const leave = await this.pastReads.enter();
    try {
      const tables = (): Tables => {
        this.checkOpen();
        return this.tables;
      };
      const past = await readPast(tables, revision, () => this.newest, prefix, signal);
      return this.snapshot((transaction, newest, compacted) => {
        checkRevision(revision, compacted, newest);
        for (const record of this.recordsAfter(past.read, transaction)) addStateBefore(past.changed, record, prefix);
        return body(past.changed, transaction);
      });
    } finally {
      leave();
    }
  }

  private snapshot<T>(body: (transaction: ReadTransaction, newest: number, compacted: number) => T): T {
    this.checkOpen();
    const transaction = this.tables.current.useReadTransaction();
    try {
      const newest = this.tables.meta.get('revision', { transaction }) ?? 0;
      return body(transaction, newest, this.tables.meta.get('compacted', { transaction }) ?? 0);
    } finally {
      transaction.done();
    }
  }

  private checkOpen(): void {
    if (this.closed) throw new Error(`the store in ${this.directory} is closed`);
  }

  private enqueue(waiting: Waiting): void {
    this.checkOpen();
    this.waiting.push(waiting);
    this.writing ??= this.drain();
  }

  private async drain(): Promise<void> {
    // This wait lets all calls that are made one after another, without awaiting their results, share the first commit.
    await undefined;
    while (this.waiting.length > 0) {
      await this.process(this.waiting.splice(0, MAX_SHARED));
    }
    this.writing = undefined;
  }

  private async process(taken: Waiting[]): Promise<void> {
    try {
      const batch = this.evaluate(taken);
      if (batch.revision !== this.newest || batch.compacted !== this.compacted) {
        if (!(await this.hasRoom(batch))) {
          if (taken.length > 1) {
            for (const each of taken) await this.process([each]);
            return;
          }
          await this.fitIn(batch);
        }
        await this.commit(batch);
      }
      for (const answer of batch.answers) answer();
    } catch (error) {
      const failure = await this.recover(error);
      for (const waiting of taken) waiting.reject(failure);
    }
  }

  private async commit(batch: Batch): Promise<void> {
    await commit(this.tables, batch, this.before());
    this.newest = batch.revision;
    this.compacted = batch.compacted;
    this.historySize.add(batch.events);
    this.historySize.forget(batch.compacted);
    // Call the listeners in the turn in which the revision changes, so that code that reads what a listener collects need not wait for it.
    this.watchers.dispatch(batch.events);
  }

  private before(): Before {
    return { newest: this.newest, compacted: this.compacted };
  }

  private hasRoom(batch: Batch): Promise<boolean> {
    return this.tables.file.makeRoom(commitOf(batch, this.before()), pageUse(this.tables));
  }

  /**
   * Makes room by deleting the history. If there is still no room, the batch may use the reserve, and keeps no history. Rejects with a
   * StorageFullError if the reserve is too small, or if needsLittle() returns false for the events of the batch.
   */
  private async fitIn(batch: Batch): Promise<void> {
    while (this.compacted < this.newest) {
      const compacted = Math.min(this.compacted + FORGET_AT_ONCE, this.newest);
      const forget: Batch = { revision: this.newest, compacted, events: [], answers: [] };
      if (!this.isSafe(forget)) throw diskFull(this.directory, undefined);
      await this.commit(forget);
    }
    batch.compacted = Math.max(batch.compacted, this.compacted);
    if (await this.hasRoom(batch)) return;
    batch.compacted = batch.revision;
    if (!needsLittle(batch.events) || !this.isSafe(batch)) throw diskFull(this.directory, undefined);
  }

  private isSafe(batch: Batch): boolean {
    return this.tables.file.isSafe(commitOf(batch, this.before()), pageUse(this.tables));
  }

  private evaluate(taken: Waiting[]): Batch {
    const batch = evaluateBatch(taken, this.newest, this.compacted, (key) => this.read(key));
    const excess = this.historySize.excess(batch.events);
    batch.compacted = Math.max(batch.compacted, batch.revision - (this.options.historyRevisions ?? 10_000), excess);
    return batch;
  }

  private async recover(error: unknown): Promise<StorageFullError> {
    const { failure, reopen } = await commitFailure(this.directory, error);
    this.options.log?.error('store: a write failed', { directory: this.directory, error: failure.message });
    if (reopen) {
      try {
        await this.tables.root.close().catch(() => {});
        this.tables = await openTables(this.directory);
      } catch (cause) {
        this.options.log?.error('store: cannot reopen the store', { error: (cause as Error).message });
      }
    }
    return failure;
  }
}
