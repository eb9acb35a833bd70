/** Writes to the store with compare-and-swap on the object's revision; retries on the newest state after a conflict. */
import { MAX_VALUES } from '../../api/schema.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { entityTooLarge, insufficientStorage, notFound } from '../../machinery/status.ts';
import { type BetweenSteps, longWork, nextOwnTurn, turnClock } from '../../platform/work-in-turns.ts';
import type { UserInfo } from '../../ports/backend.ts';
import { type Compare, StorageFullError, type Store, type Txn, type TxnResult } from '../../store/store.ts';
import {
  atRevision,
  countValues,
  decodeStored,
  deepFreeze,
  encodeStored,
  heldBytes,
  revisionOf,
} from '../cache/stored-object.ts';
import type { RegistryContext } from './context.ts';
import { readCurrent } from './reads/list.ts';
import type { Resource } from './resources.ts';

/** The limit on a stored object: twice that of a request body, because small patches can make an object grow. */
const MAX_STORED_BYTES = 6 * 1024 * 1024;

/** Throws 413 RequestEntityTooLarge. */
function encoded(resource: Resource, object: KubeObject): Uint8Array {
  const value = encodeStored(resource.toStored(object));
  if (value.length <= MAX_STORED_BYTES) return value;
  throw entityTooLarge(`the object would have ${value.length} bytes, the limit is ${MAX_STORED_BYTES}`);
}

async function transact(store: Store, txn: Txn): Promise<TxnResult> {
  try {
    return await store.txn(txn);
  } catch (error) {
    if (error instanceof StorageFullError) throw insufficientStorage(error.message);
    throw error;
  }
}

/** Returns the written object as it is served: the cache's own if it is still there, so that it is encoded only once. */
function written({ cache }: RegistryContext, key: string, resource: Resource, object: KubeObject, revision: number) {
  const cached = cache.get(key);
  if (cached !== undefined && revisionOf(cached) === revision) return resource.fromStored(cached);
  return deepFreeze(atRevision(object, revision));
}

interface Put {
  key: string;
  object: KubeObject;
  value: Uint8Array;
  user: UserInfo | undefined;
}

/**
 * Reserves room for the object's growth during the transaction. Throws 413 RequestEntityTooLarge if a client lets the object grow
 * beyond the number of values that a body may have; managedFields count as well.
 */
async function transactInRoom(
  { store, cache, room }: RegistryContext,
  { kind }: Resource,
  { key, object, value, user }: Put,
  txn: Txn,
): Promise<TxnResult> {
  if (kind.uncached) return transact(store, txn);
  const before = cache.heldBytes(key);
  const values = countValues(object);
  const growth = heldBytes(values, value.length) - before;
  if (user !== undefined && growth > 0 && values > MAX_VALUES) {
    throw entityTooLarge(`the object would have more than ${MAX_VALUES} values, those of its managedFields included`);
  }
  const leave = room.take(user, growth, before > 0);
  try {
    return await transact(store, txn);
  } finally {
    leave();
  }
}

/** Resolves to undefined if the key exists or one of `guards` no longer holds. */
export async function insert(
  context: RegistryContext,
  resource: Resource,
  key: string,
  object: KubeObject,
  guards: Compare[],
  user: UserInfo | undefined,
): Promise<KubeObject | undefined> {
  const value = encoded(resource, object);
  const result = await transactInRoom(
    context,
    resource,
    { key, object, value, user },
    {
      compare: [{ key, modRevision: 0 }, ...guards],
      puts: [{ key, value }],
    },
  );
  return result.succeeded ? written(context, key, resource, object, result.revision) : undefined;
}

/** What a change does to the object that it gets. */
export type Change = { action: 'put'; object: KubeObject } | { action: 'delete' } | { action: 'keep' };

export interface Outcome {
  action: Change['action'];
  /** The current state, or the last state before the deletion with the deletion's resourceVersion. */
  object: KubeObject;
}

/** After this many conflicts, a change that yields between its steps is made without yielding. */
const MAX_OVERTAKEN = 5;

/** Thrown by an attempt that turns out to be long while another long change is in progress. */
const OTHERS_FIRST = Symbol('others first');

const isTurnOver = turnClock();

interface Place {
  key: string;
  name: string;
  dryRun: boolean | undefined;
  /** A client may let the object grow only if there is room. Absent for parts of lifepod and for writes that end the object. */
  user?: UserInfo | undefined;
}

type MakeChange = (old: KubeObject, betweenSteps: BetweenSteps) => Change | Promise<Change>;

/**
 * Applies `change` to the object, and again after each conflict with another writer. `change` may throw an ApiError, and awaits
 * `betweenSteps` between its steps. It must not create or change other objects: that might wait for the slot for long work, which
 * this change may occupy. `settled` is called after each attempt. Throws 404 if the object does not exist.
 *
 * Long changes are made one at a time. A change that has to wait starts over, so that it keeps no copy of the object meanwhile.
 */
export async function modify(
  context: RegistryContext,
  resource: Resource,
  at: Place,
  change: MakeChange,
  settled: () => void = () => {},
): Promise<Outcome> {
  for (let begun = 1; ; begun++) {
    // The first attempt may have been slow only because the machine was busy: retry once before taking the slot.
    if (begun === 2 || isTurnOver()) await nextOwnTurn();
    const work = longWork();
    try {
      if (begun > 2) await work.begin();
      const inTurns = async (): Promise<boolean> => {
        if (work.waitsForOthers()) throw OTHERS_FIRST;
        return work.betweenSteps();
      };
      return await modifyInTurns(context, resource, at, change, settled, inTurns);
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
  inTurns: BetweenSteps,
): Promise<Outcome> {
  let stored = resource.kind.uncached ? await readCurrent(context, resource, at.key) : context.cache.get(at.key);
  for (let overtaken = 0; ; overtaken++) {
    if (stored === undefined) throw notFound(resource.groupResource, at.name);
    const old = resource.fromStored(stored);
    try {
      const wanted = await change(old, overtaken < MAX_OVERTAKEN ? inTurns : withoutTurns);
      if (wanted.action === 'keep') return { action: 'keep', object: old };
      if (at.dryRun) return { action: wanted.action, object: wanted.action === 'put' ? wanted.object : old };
      const compare = [{ key: at.key, modRevision: revisionOf(stored) }];
      const result = await write(context, resource, at, compare, wanted);
      if (result.succeeded) {
        const { action } = wanted;
        if (action === 'delete') return { action, object: atRevision(old, result.revision) };
        return { action, object: written(context, at.key, resource, wanted.object, result.revision) };
      }
      const current = result.current[0];
      stored = current === undefined ? undefined : decodeStored(current);
    } finally {
      settled();
    }
  }
}

function write(
  context: RegistryContext,
  resource: Resource,
  { key, user }: Place,
  compare: Compare[],
  wanted: Exclude<Change, { action: 'keep' }>,
): Promise<TxnResult> {
  if (wanted.action === 'delete') return transact(context.store, { compare, deletes: [key] });
  const { object } = wanted;
  const value = encoded(resource, object);
  return transactInRoom(context, resource, { key, object, value, user }, { compare, puts: [{ key, value }] });
}

const withoutTurns: BetweenSteps = async () => false;
