/** Writes to the store: compare-and-swap on the object's revision, tried again on what another writer left. */
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

/** The limit of an object as it is stored: twice that of a request's body. Small patches can make an object grow. */
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

/** The written object as everyone sees it; the cache's own where it is still there, so that it is encoded once. */
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
 * With room for what the object has more than the one before. Throws 413 RequestEntityTooLarge where a client lets it grow beyond
 * the values that a body may have: the fields with owners count as well.
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

/** Undefined where the key is taken or one of `guards` does not hold any more. */
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

/** What a change does to the object that it was given. */
export type Change = { action: 'put'; object: KubeObject } | { action: 'delete' } | { action: 'keep' };

export interface Outcome {
  action: Change['action'];
  /** As it is now, or as it was when it went (with the deletion's resourceVersion). */
  object: KubeObject;
}

/** How often others may come before a change that takes turns: after that it is made without them. */
const MAX_OVERTAKEN = 5;

/** What an attempt throws that turns out to be long while another long change is made. */
const OTHERS_FIRST = Symbol('others first');

const isTurnOver = turnClock();

interface Place {
  key: string;
  name: string;
  dryRun: boolean | undefined;
  /** This user may let the object grow only if there is room; absent: a part of lifepod, or a write that ends the object. */
  user?: UserInfo | undefined;
}

type MakeChange = (old: KubeObject, betweenSteps: BetweenSteps) => Change | Promise<Change>;

/**
 * Applies `change` to the object until no other writer comes between. `change` may throw an ApiError, and awaits `betweenSteps`
 * between its steps. It must not create or change other objects: that could wait for the slot for long work, which it may hold
 * itself. `settled` is called after each attempt. Throws 404 where there is no such object.
 *
 * Long changes are made one at a time. Those that wait are begun anew: they keep no copy of the object meanwhile.
 */
export async function modify(
  context: RegistryContext,
  resource: Resource,
  at: Place,
  change: MakeChange,
  settled: () => void = () => {},
): Promise<Outcome> {
  for (let begun = 1; ; begun++) {
    // A change that took long only because the machine was busy does not the second time.
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
