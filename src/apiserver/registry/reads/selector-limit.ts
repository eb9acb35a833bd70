/**
 * The room that the selectors of all watches share: each requirement takes memory while its watch runs, and is evaluated for
 * every change.
 */

import { tooManyRequests } from '../../../machinery/status.ts';
import type { WatchOptions } from '../../../ports/backend.ts';

/** 64 selectors of the maximum header size, with 1000 requirements each. */
const LIMIT_CHARS = 1024 * 1024;
/** A selector up to this length is never refused, so that long ones do not block ordinary clients. */
const SHORT_CHARS = 256;

export interface SelectorRoom {
  /** Takes room for the selectors until the returned function is called. Throws 429 TooManyRequests. */
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
