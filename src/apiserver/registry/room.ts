/**
 * The room that all objects have together: the cache keeps them in memory. Where it is used up, clients create nothing and let
 * nothing grow; they delete. Parts of lifepod write what they must: an engine starts and goes on where there is no room left.
 */
import { getHeapStatistics } from 'node:v8';
import type { UserInfo } from '../../machinery/backend.ts';
import { binarySize } from '../../machinery/binary-size.ts';
import { insufficientStorage } from '../../machinery/status.ts';

/** Half of it is for what requests need. Source of the limit: etcd has one of 2 GiB (--quota-backend-bytes). */
const DEFAULT_ROOM_BYTES = Math.floor(getHeapStatistics().heap_size_limit / 4);

export interface ObjectRoom {
  /**
   * Takes room for so many bytes more, until the function is called that it returns: then the cache has counted them, or they are not
   * written. Throws 507 InsufficientStorage. Without a user, who is a part of lifepod, it takes none.
   */
  take(user: UserInfo | undefined, bytes: number): () => void;
}

/** `held`: the bytes of the objects that there are. */
export function createObjectRoom(held: () => number, limit = DEFAULT_ROOM_BYTES): ObjectRoom {
  let taken = 0;
  return {
    take(user, bytes) {
      if (user === undefined || bytes <= 0) return () => {};
      if (held() + taken + bytes > limit) {
        const sizes = `the objects take ${binarySize(held())} of memory, this one ${binarySize(bytes)} more`;
        throw insufficientStorage(
          `${sizes}, and the limit is ${binarySize(limit)}: delete objects that are not needed`,
        );
      }
      taken += bytes;
      return () => {
        taken -= bytes;
      };
    },
  };
}
