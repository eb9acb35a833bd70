/**
 * Follows the ConfigMaps and Secrets that Pods of the node use. Each object has its own watch, because a node is not allowed to read other
 * objects.
 * Source: the watch-based manager of pkg/kubelet/util/manager of v1.33 (behavior).
 */
import { coreResource } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import { createInformer } from '../../client/informer.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { Platform } from '../../platform/platform.ts';
import { partsOfKey } from './references.ts';

export interface FollowedObjects {
  /** Follows the objects with these keys (fileSourceKey) for the owner, and stops following all other objects for the owner. */
  follow(owner: string, keys: ReadonlySet<string>): void;
  /** The watch of an object ends when no owner is left. */
  unfollow(owner: string): void;
}

export interface FollowedObjectsOptions extends Platform {
  client: Client;
  signal: AbortSignal;
}

interface Followed {
  owners: Set<string>;
  stop: AbortController;
}

const NONE: ReadonlySet<string> = new Set();

/** Calls `changed` with the key of each followed object that is added, updated or deleted, and once if the object exists already. */
export function followObjects(
  { client, timers, log, signal }: FollowedObjectsOptions,
  changed: (key: string) => void,
): FollowedObjects {
  const keysOf = new Map<string, ReadonlySet<string>>();
  const followed = new Map<string, Followed>();
  onAbort(signal, () => {
    for (const { stop } of followed.values()) stop.abort();
    followed.clear();
  });

  function start(key: string): Followed {
    const stop = new AbortController();
    const { resource, namespace, name } = partsOfKey(key);
    const notify = (): void => changed(key);
    createInformer(
      client.resource(coreResource(resource)),
      { namespace, fieldSelector: `metadata.name=${name}`, timers, log, signal: stop.signal },
      { added: notify, updated: notify, deleted: notify },
    );
    return { owners: new Set(), stop };
  }
  function add(key: string, owner: string): void {
    const known = followed.get(key) ?? start(key);
    known.owners.add(owner);
    followed.set(key, known);
  }
  function remove(key: string, owner: string): void {
    const known = followed.get(key);
    known?.owners.delete(owner);
    if (known?.owners.size !== 0) return;
    followed.delete(key);
    known.stop.abort();
  }

  return {
    follow(owner, keys) {
      if (signal.aborted) return;
      const before = keysOf.get(owner) ?? NONE;
      keysOf.set(owner, keys);
      for (const key of keys) if (!before.has(key)) add(key, owner);
      for (const key of before) if (!keys.has(key)) remove(key, owner);
    },
    unfollow(owner) {
      const before = keysOf.get(owner) ?? NONE;
      keysOf.delete(owner);
      for (const key of before) remove(key, owner);
    },
  };
}
