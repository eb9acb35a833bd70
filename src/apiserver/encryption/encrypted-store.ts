/**
 * A store that encrypts the values of some resources before it passes them to another store. A value is decrypted when its bytes are first
 * read, so that an unread value costs nothing. Reading a value that cannot be decrypted throws an UnreadableValueError, and does not affect
 * other values.
 */
import { ApiError, internalError } from '../../machinery/status.ts';
import type { Store, StoredValue, StoreEvent, Txn, TxnResult } from '../../store/store.ts';
import { beginsWith, ENCRYPTED } from './ciphers.ts';
import { PLAIN, type Transformer } from './transformer.ts';

/** As upstream, reads of the object and lists that contain the object fail with 500. */
export class UnreadableValueError extends ApiError {
  readonly key: string;
  /** Such as `cipher: message authentication failed`. */
  readonly problem: string;
  /** The value as it was passed to the function that could not read it. */
  readonly stored: Uint8Array;
  constructor(key: string, problem: string, stored: Uint8Array) {
    super(internalError(`unable to transform key ${JSON.stringify(key)}: ${problem}`).status);
    this.key = key;
    this.problem = problem;
    this.stored = stored;
  }
}

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

export function decrypt(transformer: Transformer, key: string, value: Uint8Array): Uint8Array {
  try {
    return transformer.fromStorage(key, value);
  } catch (error) {
    throw new UnreadableValueError(key, (error as Error).message, value);
  }
}

/** Also throws an UnreadableValueError if the decrypted value is not JSON: with a wrong key, aescbc may return any bytes. */
export function decryptJson(transformer: Transformer, key: string, value: Uint8Array): unknown {
  const plain = decrypt(transformer, key, value);
  try {
    return JSON.parse(Buffer.from(plain).toString());
  } catch {
    throw notJson(key, value);
  }
}

/** Omits the message of JSON.parse(), which would contain a part of the value. */
export const notJson = (key: string, value: Uint8Array): UnreadableValueError =>
  new UnreadableValueError(key, 'the value is not JSON', value);

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
