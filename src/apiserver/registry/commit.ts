/** Writes to the store: compare-and-swap on the object's revision, tried again on what another writer left. */
import type { KubeObject } from '../../machinery/meta.ts';
import { entityTooLarge, insufficientStorage, notFound, objectModified } from '../../machinery/status.ts';
import { type BetweenSteps, workInTurns } from '../../platform/work-in-turns.ts';
import { type Compare, StorageFullError, type Store, type Txn, type TxnResult } from '../../store/store.ts';
import { atRevision, decodeStored, deepFreeze, encodeStored, revisionOf } from '../cache/stored-object.ts';
import type { RegistryContext } from './context.ts';
import { readCurrent } from './list.ts';
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

/** Undefined where the key is taken or one of `guards` does not hold any more. */
export async function insert(
  context: RegistryContext,
  resource: Resource,
  key: string,
  object: KubeObject,
  guards: Compare[],
): Promise<KubeObject | undefined> {
  const value = encoded(resource, object);
  const result = await transact(context.store, {
    compare: [{ key, modRevision: 0 }, ...guards],
    puts: [{ key, value }],
  });
  return result.succeeded ? written(context, key, resource, object, result.revision) : undefined;
}

/** What a change does to the object that it was given. */
export type Change = { action: 'put'; object: KubeObject } | { action: 'delete' } | { action: 'keep' };

export interface Outcome {
  action: Change['action'];
  /** As it is now, or as it was when it went (with the deletion's resourceVersion). */
  object: KubeObject;
}

/** How often a change that takes turns is tried: others may write meanwhile, again and again. Source: upstream's patch handler. */
const MAX_LONG_ATTEMPTS = 5;

/**
 * Applies `change` to the object until no other writer comes between. `change` may throw an ApiError, and awaits what it is
 * given between its steps; `settled` is called after each attempt. Throws 404 where there is no such object, and 409 where others
 * wrote each time that a long change was tried.
 */
export async function modify(
  context: RegistryContext,
  resource: Resource,
  at: { key: string; name: string; dryRun: boolean | undefined },
  change: (old: KubeObject, betweenSteps: BetweenSteps) => Change | Promise<Change>,
  settled: () => void = () => {},
): Promise<Outcome> {
  let stored = resource.kind.uncached ? await readCurrent(context, resource, at.key) : context.cache.get(at.key);
  let longAttempts = 0;
  for (;;) {
    if (stored === undefined) throw notFound(resource.groupResource, at.name);
    const old = resource.fromStored(stored);
    const turn = workInTurns();
    let isLong = false;
    const betweenSteps = async (): Promise<boolean> => {
      const waited = await turn();
      isLong ||= waited;
      return waited;
    };
    try {
      const wanted = await change(old, betweenSteps);
      if (wanted.action === 'keep') return { action: 'keep', object: old };
      if (at.dryRun) return { action: wanted.action, object: wanted.action === 'put' ? wanted.object : old };
      const compare = [{ key: at.key, modRevision: revisionOf(stored) }];
      const write =
        wanted.action === 'delete'
          ? { deletes: [at.key] }
          : { puts: [{ key: at.key, value: encoded(resource, wanted.object) }] };
      await betweenSteps();
      const result = await transact(context.store, { compare, ...write });
      if (result.succeeded) {
        const { action } = wanted;
        if (action === 'delete') return { action, object: atRevision(old, result.revision) };
        return { action, object: written(context, at.key, resource, wanted.object, result.revision) };
      }
      if (isLong && ++longAttempts === MAX_LONG_ATTEMPTS) throw objectModified(resource.groupResource, at.name);
      const current = result.current[0];
      stored = current === undefined ? undefined : decodeStored(current);
    } finally {
      settled();
    }
  }
}
