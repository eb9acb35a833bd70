/**
 * A store that encrypts the values of some resources before it passes them to another store, and decrypts them when they are used.
 *
 * Invariants:
 *  1. A value is decrypted when its bytes are first read, and only once, so that an unread value, such as the replaced value of an event,
 *     costs nothing. The event of a write of this process contains the plain value that was written, without decryption.
 *  2. A value that cannot be decrypted does not affect others: only reading its bytes throws an UnreadableValueError.
 *  3. Once settled() has resolved, all values that were encrypted before the call are in the other store, or never will be.
 */
import { ApiError, internalError } from '../../machinery/status.ts';
import type { Store, StoredValue, StoreEvent, Txn, TxnResult } from '../../store/store.ts';
import { beginsWith, ENCRYPTED } from './ciphers.ts';
import { PLAIN, type Transformer } from './transformer.ts';

/**
 * The error for a value in the store that cannot be decrypted, or is not JSON. As upstream, reads of the object and lists that contain the
 * object fail with 500.
 */
export class UnreadableValueError extends ApiError {
  readonly key: string;
  /** The reason, such as `cipher: message authentication failed`. */
  readonly problem: string;
  constructor(key: string, problem: string) {
    super(internalError(`unable to transform key ${JSON.stringify(key)}: ${problem}`).status);
    this.key = key;
    this.problem = problem;
  }
}

/** Returns the transformer for the value with the key. Called for each value that is read or written. */
export type TransformerFor = (key: string) => Transformer;

export interface EncryptedStore extends Store {
  /** Resolves when all transactions that have begun have ended. */
  settled(): Promise<void>;
}

class DecryptedValue implements StoredValue {
  readonly key: string;
  readonly createRevision: number;
  readonly modRevision: number;
  readonly #transformer: Transformer;
  #stored: Uint8Array | undefined;
  #value: Uint8Array | undefined;

  constructor({ key, createRevision, modRevision, value }: StoredValue, transformer: Transformer) {
    this.key = key;
    this.createRevision = createRevision;
    this.modRevision = modRevision;
    this.#transformer = transformer;
    this.#stored = value;
  }

  get value(): Uint8Array {
    if (this.#stored !== undefined) {
      this.#value = decrypt(this.#transformer, this.key, this.#stored);
      this.#stored = undefined;
    }
    return this.#value as Uint8Array;
  }
}

/** Returns the decrypted value. Throws an UnreadableValueError if the value cannot be decrypted. */
export function decrypt(transformer: Transformer, key: string, value: Uint8Array): Uint8Array {
  try {
    return transformer.fromStorage(key, value);
  } catch (error) {
    throw new UnreadableValueError(key, (error as Error).message);
  }
}

export function encryptedStore(store: Store, transformerFor: TransformerFor): EncryptedStore {
  const running = new Set<Promise<unknown>>();
  /** The plain values that were written, by the encrypted bytes, which the store returns in its events. */
  const written = new WeakMap<Uint8Array, { key: string; value: Uint8Array }>();
  const decrypted = (kv: StoredValue): StoredValue => {
    const transformer = transformerFor(kv.key);
    if (transformer === PLAIN && !beginsWith(kv.value, ENCRYPTED)) return kv;
    const known = written.get(kv.value);
    return known?.key === kv.key ? { ...kv, value: known.value } : new DecryptedValue(kv, transformer);
  };
  const readable = <T extends StoredValue | undefined>(kv: T): T => (kv === undefined ? kv : (decrypted(kv) as T));
  const eventOf = (event: StoreEvent): StoreEvent =>
    event.type === 'put'
      ? { ...event, kv: decrypted(event.kv), previous: readable(event.previous) }
      : { ...event, previous: decrypted(event.previous) };
  const encryptedPut = ({ key, value }: { key: string; value: Uint8Array }) => {
    const stored = transformerFor(key).toStorage(key, value);
    if (stored !== value) written.set(stored, { key, value });
    return { key, value: stored };
  };
  const encrypted = (txn: Txn): Txn =>
    txn.puts === undefined || txn.puts.every(({ key }) => transformerFor(key) === PLAIN)
      ? txn
      : { ...txn, puts: txn.puts.map(encryptedPut) };
  return {
    revision: () => store.revision(),
    get: async (key, revision) => readable(await store.get(key, revision)),
    async range(options) {
      const range = await store.range(options);
      return { ...range, items: range.items.map(decrypted) };
    },
    txn(txn): Promise<TxnResult> {
      const call = store.txn(encrypted(txn));
      running.add(call);
      const end = (): void => void running.delete(call);
      call.then(end, end);
      return call;
    },
    watch: (prefix, afterRevision, listener) =>
      store.watch(prefix, afterRevision, (events) => listener(events.map(eventOf))),
    compact: (revision) => store.compact(revision),
    close: () => store.close(),
    settled: async () => void (await Promise.allSettled(running)),
  };
}
