/**
 * The room that all objects share, because the cache keeps them in memory. If it is used up, clients cannot create objects or let
 * them grow, except by a little into a reserve. They can delete, evict and give up defer containers. Parts of lifepod write without
 * a limit, so that an engine starts and keeps running without room.
 */
import { getHeapStatistics } from 'node:v8';
import { binarySize } from '../../machinery/binary-size.ts';
import { insufficientStorage } from '../../machinery/status.ts';
import type { UserInfo } from '../../ports/backend.ts';

/** Leaves most of the heap to requests and caches. Source of the limit: etcd has one of 2 GiB (--quota-backend-bytes). */
const DEFAULT_ROOM_BYTES = Math.floor(getHeapStatistics().heap_size_limit / 4);
/** This part of the room is reserved for small updates, such as statuses and labels of terminating objects. */
const RESERVED_PART = 1 / 16;
/** The memory of 4 KiB of a stored object, as text and as a few values. */
const SMALL_GROWTH_BYTES = 16 * 1024;

export interface ObjectRoom {
  /**
   * Reserves room for additional bytes until the returned function is called: by then the cache counts the bytes, or they were not
   * written. Throws 507 InsufficientStorage. An object that `exists` may grow a little into the reserve. Without a user, that is, for
   * a part of lifepod, nothing is reserved.
   */
  take(user: UserInfo | undefined, bytes: number, exists: boolean): () => void;
}

/** `held` returns the bytes of the existing objects. */
export function createObjectRoom(held: () => number, limit = DEFAULT_ROOM_BYTES): ObjectRoom {
  let taken = 0;
  return {
    take(user, bytes, exists) {
      if (user === undefined || bytes <= 0) return () => {};
      const isSmall = exists && bytes <= SMALL_GROWTH_BYTES;
      const most = isSmall ? limit : limit * (1 - RESERVED_PART);
      if (held() + taken + bytes > most) {
        const sizes = `the objects take ${binarySize(held())} of memory, this one ${binarySize(bytes)} more`;
        throw insufficientStorage(`${sizes}, and the limit is ${binarySize(most)}: delete objects that are not needed`);
      }
      taken += bytes;
      return () => {
        taken -= bytes;
      };
    },
  };
}
