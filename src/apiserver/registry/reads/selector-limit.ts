/**
 * Limits the total length of the selectors of all running watches. Each requirement of a selector takes memory while the watch runs, and
 * may be evaluated for every change of the resource.
 */

import { tooManyRequests } from '../../../machinery/status.ts';
import type { WatchOptions } from '../../../ports/backend.ts';

/** 64 watches may have selectors of 16 KiB, the maximum size of a request's headers. */
const LIMIT_CHARS = 1024 * 1024;
/** Shorter selectors of a watch are never refused, so that watches with long selectors do not block ordinary clients. */
const SHORT_CHARS = 256;

export interface SelectorRoom {
  /**
   * Counts the selectors of a watch until the returned function is called. Throws 429 TooManyRequests if the selectors are long and the
   * total would exceed the limit.
   */
  take(options: Pick<WatchOptions, 'labelSelector' | 'fieldSelector'>): () => void;
}

export function createSelectorRoom(limit = LIMIT_CHARS): SelectorRoom {
  let taken = 0;
  return {
    take({ labelSelector = '', fieldSelector = '' }) {
      const chars = labelSelector.length + fieldSelector.length;
      if (chars > SHORT_CHARS && taken + chars > limit) {
        throw tooManyRequests('too many watches have long selectors, please try again later', 1);
      }
      taken += chars;
      return () => {
        taken -= chars;
      };
    },
  };
}
