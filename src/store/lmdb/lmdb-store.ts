/**
 * The embedded store: LMDB, one environment in a folder, one process.
 *
 * Transactions that arrive while a commit is under way wait and share the next one, so any number of writers costs
 * one flush to the disk each time.
 *
 * Invariants:
 *  1. One commit at a time; each is decided on what the last one left. A commit that fails has changed nothing.
 *  2. Revision counter, current values and history change in the same LMDB transaction.
 *  3. At most `historyRevisions` revisions of history are kept, and as many as fit into a number of bytes; each commit
 *     forgets what is beyond that.
 */
import type { Log } from '../../platform/platform.ts';
import { eventsOf, type HistoryRecord, stateBefore } from '../history.ts';
import {
  CompactedError,
  type RangeOptions,
  type StorageFullError,
  type Store,
  type StoredValue,
  type StoreEvent,
  type Txn,
  type TxnResult,
} from '../store.ts';
import {
  checkRevision,
  checkTxn,
  comparableKey,
  evaluate,
  eventKey,
  eventRevision,
  eventValue,
  isKey,
  prefixEnd,
  rewoundRange,
} from '../transaction.ts';
import { createWatchers } from '../watchers.ts';
import { commitFailure } from './commit-failure.ts';
import { HistorySize } from './history-size.ts';
import { fromChanges, fromStored, openTables, type Tables, toRecord, toStored } from './tables.ts';

export interface LmdbStoreOptions {
  /** Made where it is not there (0700). */
  directory: string;
  /** How many revisions of history are kept for watches and older reads. */
  historyRevisions?: number;
  log?: Log;
}

type Waiting = (
  | { kind: 'txn'; txn: Txn; resolve: (result: TxnResult) => void }
  | { kind: 'compact'; revision: number; resolve: () => void }
) & { reject: (error: Error) => void };

/** What one LMDB transaction writes. */
interface Batch {
  revision: number;
  compacted: number;
  events: StoreEvent[];
  /** Answers that hold once it is durable. */
  answers: (() => void)[];
}

/** Rejects with one sentence where the folder holds something else, or cannot be read. */
export async function openLmdbStore(options: LmdbStoreOptions): Promise<Store> {
  const store = new LmdbStore(options, await openTables(options.directory));
  store.load();
  return store;
}

class LmdbStore implements Store {
  private readonly directory: string;
  private readonly historyRevisions: number;
  private readonly log: Log | undefined;
  private tables: Tables;
  private readonly watchers = createWatchers();
  private waiting: Waiting[] = [];
  private writing: Promise<void> | undefined;
  private readonly historySize = new HistorySize();
  private newest = 0;
  private compacted = 0;
  private closed = false;

  constructor(options: LmdbStoreOptions, tables: Tables) {
    this.directory = options.directory;
    this.historyRevisions = options.historyRevisions ?? 10_000;
    this.log = options.log;
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
    return this.snapshot((transaction, newest, compacted) => {
      checkRevision(revision, compacted, newest);
      const before = stateBefore(this.recordsAfter(revision, transaction), key);
      return before.has(key) ? before.get(key) : this.read(key, transaction);
    });
  }

  async range(options: RangeOptions): Promise<{ items: StoredValue[]; revision: number; remaining: number }> {
    return this.snapshot((transaction, newest, compacted) => {
      const revision = options.revision ?? newest;
      checkRevision(revision, compacted, newest);
      const { current } = this.tables;
      // LMDB fails where it is asked for what cannot be a key.
      if (options.prefix !== '' && !isKey(options.prefix)) return { items: [], revision, remaining: 0 };
      const isAfter = options.after !== undefined && options.after >= options.prefix;
      const after = isAfter && options.after !== undefined ? comparableKey(options.after) : undefined;
      const bounds = { start: after ?? options.prefix, exclusiveStart: after !== undefined, transaction };
      const end = prefixEnd(options.prefix);
      const whole = end === undefined ? bounds : { ...bounds, end };
      if (revision !== newest) {
        const newestItems = current.getRange(whole).map(({ key, value }) => toStored(key, value));
        const changed = stateBefore(this.recordsAfter(revision, transaction), options.prefix);
        return { ...rewoundRange(newestItems, changed, options), revision };
      }
      const shown = options.limit ? { ...whole, limit: options.limit } : whole;
      const items = [...current.getRange(shown)].map(({ key, value }) => toStored(key, value));
      const last = items.at(-1);
      const more = options.limit !== undefined && items.length === options.limit && last !== undefined;
      const remaining = more ? current.getKeysCount({ ...whole, start: last.key, exclusiveStart: true }) : 0;
      return { items, revision, remaining };
    });
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
    await this.writing;
    await this.tables.root.close();
  }

  private read(key: string, transaction?: ReadTransaction): StoredValue | undefined {
    if (!isKey(key)) return undefined;
    const row = this.tables.current.get(key, transaction === undefined ? undefined : { transaction });
    return row === undefined ? undefined : toStored(key, row);
  }

  private recordsAfter(revision: number, transaction: ReadTransaction): HistoryRecord[] {
    const rows = this.tables.history.getRange({ start: revision + 1, transaction });
    return [...rows].map(({ key, value }) => toRecord(key, value));
  }

  /** Reads of one moment: a commit that lands between them is not seen, or not in part. */
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

  /** Commits until nobody waits. */
  private async drain(): Promise<void> {
    // Those who call in the same turn share the first commit.
    await undefined;
    while (this.waiting.length > 0) {
      const taken = this.waiting;
      this.waiting = [];
      await this.process(taken);
    }
    this.writing = undefined;
  }

  private async process(taken: Waiting[]): Promise<void> {
    let batch: Batch;
    try {
      batch = this.decide(taken);
      if (batch.revision !== this.newest || batch.compacted !== this.compacted) await this.commit(batch);
    } catch (error) {
      const failure = await this.recover(error);
      for (const waiting of taken) waiting.reject(failure);
      return;
    }
    this.newest = batch.revision;
    this.compacted = batch.compacted;
    this.historySize.add(batch.events);
    this.historySize.forget(batch.compacted);
    this.watchers.dispatch(batch.events);
    for (const answer of batch.answers) answer();
  }

  /** Runs the transactions one after another on the committed state and on what those before them write. */
  private decide(taken: Waiting[]): Batch {
    const written = new Map<string, StoredValue | undefined>();
    const lookup = (key: string): StoredValue | undefined => (written.has(key) ? written.get(key) : this.read(key));
    const batch: Batch = { revision: this.newest, compacted: this.compacted, events: [], answers: [] };
    for (const waiting of taken) {
      if (waiting.kind === 'compact') {
        const { revision, resolve, reject } = waiting;
        if (revision > batch.revision) {
          reject(new Error(`cannot compact to the future revision ${revision}, the newest is ${batch.revision}`));
          continue;
        }
        batch.compacted = Math.max(batch.compacted, revision);
        batch.answers.push(resolve);
        continue;
      }
      const { result, events } = evaluate(waiting.txn, batch.revision, lookup);
      for (const event of events) written.set(eventKey(event), eventValue(event));
      batch.revision = result.revision;
      batch.events.push(...events);
      batch.answers.push(() => waiting.resolve(result));
    }
    const excess = this.historySize.excess(batch.events);
    batch.compacted = Math.max(batch.compacted, batch.revision - this.historyRevisions, excess);
    return batch;
  }

  /** Resolves when the batch is on the disk. */
  private async commit(batch: Batch): Promise<void> {
    const { root, current, history, meta } = this.tables;
    const changes = Map.groupBy(batch.events, eventRevision);
    await root.batch(() => {
      for (const event of batch.events) {
        if (event.type === 'put') current.put(event.kv.key, fromStored(event.kv));
        else current.remove(event.key);
      }
      for (const [revision, events] of changes) {
        // A batch larger than the history adds nothing that it would forget at once.
        if (revision <= batch.compacted) continue;
        history.put(revision, fromChanges(events.map((event) => ({ key: eventKey(event), previous: event.previous }))));
      }
      for (let revision = this.compacted + 1; revision <= Math.min(batch.compacted, this.newest); revision++) {
        history.remove(revision);
      }
      meta.put('revision', batch.revision);
      if (batch.compacted !== this.compacted) meta.put('compacted', batch.compacted);
    });
    root.resetReadTxn();
  }

  /** After a failed commit: what to tell the writers; LMDB is opened anew where it may refuse to go on. */
  private async recover(error: unknown): Promise<StorageFullError> {
    const { failure, reopen } = await commitFailure(this.directory, error);
    this.log?.error('store: a write failed', { directory: this.directory, error: failure.message });
    if (reopen) {
      try {
        await this.tables.root.close().catch(() => {});
        this.tables = await openTables(this.directory);
      } catch (cause) {
        this.log?.error('store: cannot open the store again', { error: (cause as Error).message });
      }
    }
    return failure;
  }
}

type ReadTransaction = ReturnType<Tables['current']['useReadTransaction']>;
