/**
 * Limits the memory of all cached objects together (the room). When the room is used up, clients cannot create objects or make them grow,
 * except for small updates, which may use a reserve. Clients can still delete objects. Components of lifepod write without a limit, so that
 * an engine can start and keep running even when the room is used up.
 */
import { getHeapStatistics } from 'node:v8';
import { binarySize } from '../../machinery/binary-size.ts';
import { insufficientStorage } from '../../machinery/status.ts';

/** The rest of the heap is for requests and other caches. etcd has a similar limit of 2 GiB (--quota-backend-bytes). */
const DEFAULT_ROOM_BYTES = Math.floor(getHeapStatistics().heap_size_limit / 4);
/** The fraction of the room that is reserved for small updates, such as changes of statuses. */
const RESERVED_PART = 1 / 16;
/** The maximum growth of an object in a small update: enough for about 4 KiB of JSON (see heldBytes()). */
const SMALL_GROWTH_BYTES = 16 * 1024;

export interface ObjectRoom {
  /**
   * Reserves `bytes` of room for the growth of an object. Call the returned function when the write has failed, or when the cache counts
   * the written bytes. If the object `exists`, a small growth may use the reserve. Writes of components of lifepod are not limited
   * (`isLimited`). Throws 507 InsufficientStorage if there is not enough room.
   */
  take(isLimited: boolean, bytes: number, exists: boolean): () => void;
}

/** Sizes are in bytes. `held`: returns the memory of all objects in the cache. */
export function createObjectRoom(held: () => number, limit = DEFAULT_ROOM_BYTES): ObjectRoom {
  let taken = 0;
  return {
    take(isLimited, bytes, exists) {
      if (!isLimited || bytes <= 0) return () => {};
      const isSmall = exists && bytes <= SMALL_GROWTH_BYTES;
      const most = isSmall ? limit : limit * (1 - RESERVED_PART);
      if (held() + taken + bytes > most) {
        const sizes = `the objects take ${binarySize(held())} of memory, this object needs ${binarySize(bytes)} more`;
        throw insufficientStorage(`${sizes}, and the limit is ${binarySize(most)}: delete objects that are not needed`);
      }
      taken += bytes;
      return () => {
        taken -= bytes;
      };
    },
  };
}
