/** Writes objects to the store with compare-and-swap on the revision of the object. */
import { MAX_VALUES } from '../../api/schema.ts';
import { deepFreeze } from '../../machinery/deep-freeze.ts';
import { giveText } from '../../machinery/encode.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { type ApiError, entityTooLarge, insufficientStorage, notFound } from '../../machinery/status.ts';
import { type BetweenSteps, longWork, nextOwnTurn, turnClock } from '../../platform/work-in-turns.ts';
import type { RequestContext } from '../../ports/request.ts';
import { StorageFullError, type Store, type Txn, type TxnResult } from '../../store/store.ts';
import type { Outside } from '../admission/chain.ts';
import type { Alongside } from '../admission/plugin.ts';
import {
  atRevision,
  countValues,
  giveContent,
  heldBytes,
  revisionOf,
  storedText,
  textAtRevision,
} from '../cache/stored-object.ts';
import type { RegistryContext } from './context.ts';
import { whenCurrent } from './reads/freshness.ts';
import { readCurrent } from './reads/list.ts';
import type { Resource } from './resources.ts';

/** Twice the limit on a request body, because small patches can make an object larger than any body. */
const MAX_STORED_BYTES = 6 * 1024 * 1024;

type Storage = Pick<RegistryContext, 'store' | 'cache' | 'room'>;

/** The JSON for the store, as text and in UTF-8, and the number of its values. */
interface Encoded {
  text: string;
  value: Uint8Array;
  values: number;
}

/** Throws 413 RequestEntityTooLarge if the object exceeds MAX_STORED_BYTES. */
function encode(resource: Resource, object: KubeObject): Encoded {
  const stored = resource.toStored(object);
  const text = storedText(stored);
  const value = Buffer.from(text);
  if (value.length <= MAX_STORED_BYTES) return { text, value, values: giveContent(value, stored) };
  throw entityTooLarge(`the object would have ${value.length} bytes, the limit is ${MAX_STORED_BYTES}`);
}

const tooManyValues = (): ApiError =>
  entityTooLarge(`the object would have more than ${MAX_VALUES} values, including those of its managedFields`);

/**
 * Throws 413 RequestEntityTooLarge if a client's object has more than MAX_VALUES values and more values than `old`, the object that it
 * replaces. Call it before the validation: the defaults may have added several times as many values as the body has. Ignores the status of
 * the new object, which most writes drop.
 */
export function refuseManyValues(object: KubeObject, old: KubeObject | undefined, { source }: Sender): void {
  if (source !== 'client') return;
  const values = countValues({ ...object, status: undefined });
  if (values > MAX_VALUES && (old === undefined || values > countValues(old))) throw tooManyValues();
}

async function transact(store: Store, txn: Txn): Promise<TxnResult> {
  try {
    return await store.txn(txn);
  } catch (error) {
    if (error instanceof StorageFullError) throw insufficientStorage(error.message);
    throw error;
  }
}

/**
 * Returns the written object in its served form. Prefers the object in the cache, so that the response and other readers share one encoded
 * text. The text for a client is derived from the stored text, so that the object is not encoded again.
 */
function written({ cache }: Storage, resource: Resource, { key, object, text, sender }: Put, revision: number) {
  const cached = cache.get(key);
  if (cached === undefined || revisionOf(cached) !== revision) return deepFreeze(atRevision(object, revision));
  const served = resource.fromStored(cached);
  if (served !== cached || sender?.source !== 'client') return served;
  const shared = textAtRevision(text, revision);
  if (shared !== undefined) giveText(cached, shared);
  return served;
}

/** The limits of a write depend on its sender. Writes that free memory have no limits, and no sender. */
type Sender = Pick<RequestContext, 'source'>;

interface Put extends Encoded {
  key: string;
  object: KubeObject;
  sender: Sender | undefined;
}

/**
 * Whether a write also stores other objects, such as a quota. Such writes take turns: otherwise, all but one of several concurrent writes
 * that change the same quota would conflict and start over.
 */
export const changesObjects = (alongside: readonly Alongside[]): boolean =>
  alongside.some(({ object }) => object !== undefined);

function withAlongside(txn: Required<Txn>, alongside: readonly Alongside[]): Txn {
  for (const { key, modRevision, object, deleted } of alongside) {
    txn.compare.push({ key, modRevision });
    if (object !== undefined) txn.puts.push({ key, value: Buffer.from(storedText(object)) });
    if (deleted) txn.deletes.push(key);
  }
  return txn;
}

/**
 * If a client's write makes the object grow, reserves room for the growth (see object-memory-limit.ts) until the cache counts the object.
 * The objects in `alongside` are small, so their growth is not limited. Rejects with 507 InsufficientStorage if there is no room or the
 * store is full, and 413 RequestEntityTooLarge if a client's write makes the object grow to more than MAX_VALUES values. Objects of
 * uncached kinds take no room, and the limit on values does not apply to them.
 */
async function transactInRoom(
  context: Storage,
  { kind }: Resource,
  { key, value, values, sender }: Put,
  { modRevision, alongside }: { modRevision: number; alongside: readonly Alongside[] },
): Promise<TxnResult> {
  const { store, cache, room } = context;
  const txn = withAlongside({ compare: [{ key, modRevision }], puts: [{ key, value }], deletes: [] }, alongside);
  if (kind.uncached) return transact(store, txn);
  const before = cache.heldBytes(key);
  const growth = heldBytes(values, value.length) - before;
  if (sender?.source === 'client' && growth > 0 && values > MAX_VALUES) throw tooManyValues();
  const leave = room.take(sender?.source === 'client', growth, before > 0);
  try {
    return await transact(store, txn);
  } finally {
    whenCurrent(context, leave);
  }
}

/**
 * Resolves to undefined if the key exists, or if a condition in `guards` is not met. Rejects with 413 RequestEntityTooLarge if the object
 * is too large, and with 507 InsufficientStorage if there is no room or the store is full.
 */
export async function insert(
  context: Storage,
  resource: Resource,
  key: string,
  object: KubeObject,
  guards: Alongside[],
  sender: Sender | undefined,
): Promise<KubeObject | undefined> {
  const put = { key, object, sender, ...encode(resource, object) };
  const result = await transactInRoom(context, resource, put, { modRevision: 0, alongside: guards });
  return result.succeeded ? written(context, resource, put, result.revision) : undefined;
}

/**
 * `put` stores a new state of the object, `delete` deletes the object, and `keep` writes nothing. `alongside` returns the changes of other
 * objects.
 */
export type Change =
  | { action: 'put'; object: KubeObject; alongside?: () => Alongside[] }
  | { action: 'delete'; alongside?: () => Alongside[] }
  | { action: 'keep' };

export interface Outcome {
  action: Change['action'];
  /**
   * The object after the change. After a delete: its last state with the resourceVersion of the deletion. In a dry run of a delete: the
   * unchanged object.
   */
  object: KubeObject;
}

/**
 * After this number of conflicts, a change is computed without yielding to other work, so that other writers have less time to cause
 * another conflict.
 */
const MAX_OVERTAKEN = 5;

/** Thrown by an attempt that would have to wait for other long work. The change then starts over. */
const OTHERS_FIRST = Symbol('others first');

const isTurnOver = turnClock();

interface Place {
  key: string;
  name: string;
  dryRun: boolean | undefined;
  /**
   * The source of the change. Absent for writes that delete the object, or begin or shorten its termination: such writes are not limited.
   */
  sender?: Sender | undefined;
  /** Once the signal has aborted, the change is not tried again after a conflict. */
  signal: AbortSignal;
}

export interface Steps {
  betweenSteps: BetweenSteps;
  /** Awaits the promise of an admission plugin, without occupying the slot of longWork() meanwhile. */
  outside: Outside;
}

type MakeChange = (old: KubeObject, steps: Steps) => Change | Promise<Change>;

/**
 * Applies `change` to the object and stores the result. After a conflict with another writer, calls `change` again with the newest state.
 * `change` must not write other objects: such a write might wait for the slot of longWork(), which this change may occupy. `settled` is
 * called after each attempt, even after an error. Rejects with 404 if the object does not exist, and with 413 and 507 like insert().
 *
 * Long changes take turns in the slot of longWork(). A change that would have to wait for the slot starts over, so that no copy of the
 * object stays in memory during the wait.
 */
export async function modify(
  context: RegistryContext,
  resource: Resource,
  at: Place,
  change: MakeChange,
  settled: () => void = () => {},
): Promise<Outcome> {
  for (let begun = 1; ; begun++) {
    // The first attempt may have been slow only because the machine was busy, so the second attempt also begins without the slot.
    if (begun === 2 || isTurnOver()) await nextOwnTurn();
    const work = longWork();
    try {
      if (begun > 2) await work.begin();
      const inTurns = async (): Promise<boolean> => {
        if (work.waitsForOthers()) throw OTHERS_FIRST;
        return work.betweenSteps();
      };
      return await modifyInTurns(context, resource, at, change, settled, {
        betweenSteps: inTurns,
        outside: work.outside,
      });
    } catch (error) {
      if (error !== OTHERS_FIRST) throw error;
    } finally {
      work.end();
    }
  }
}

async function modifyInTurns(
  context: RegistryContext,
  resource: Resource,
  at: Place,
  change: MakeChange,
  settled: () => void,
  steps: Steps,
): Promise<Outcome> {
  for (let overtaken = 0; ; overtaken++) {
    if (overtaken > 0) at.signal.throwIfAborted();
    const stored = await readCurrent(context, resource, at.key);
    if (stored === undefined) throw notFound(resource.groupResource, at.name);
    const old = resource.fromStored(stored);
    try {
      const wanted = await change(old, overtaken < MAX_OVERTAKEN ? steps : { ...steps, betweenSteps: withoutTurns });
      if (wanted.action === 'keep') return { action: 'keep', object: old };
      const alongside = (): Alongside[] => wanted.alongside?.() ?? [];
      const others = alongside();
      if (at.dryRun) return { action: wanted.action, object: wanted.action === 'put' ? wanted.object : old };
      const modRevision = revisionOf(stored);
      const { action } = wanted;
      if (action === 'delete') {
        const txn = withAlongside({ compare: [{ key: at.key, modRevision }], puts: [], deletes: [at.key] }, others);
        const { succeeded, revision } = await transact(context.store, txn);
        if (succeeded) return { action, object: atRevision(old, revision) };
        continue;
      }
      const { object } = wanted;
      const put = { key: at.key, object, sender: at.sender, ...encode(resource, object) };
      const write = (also: readonly Alongside[]) =>
        transactInRoom(context, resource, put, { modRevision, alongside: also });
      const { succeeded, revision } = await (changesObjects(others)
        ? context.takingTurns(object.metadata.namespace ?? '', () => write(alongside()))
        : write(others));
      if (succeeded) return { action, object: written(context, resource, put, revision) };
    } finally {
      settled();
    }
  }
}

const withoutTurns: BetweenSteps = async () => false;
