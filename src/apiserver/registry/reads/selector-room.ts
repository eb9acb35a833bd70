/**
 * The room that the selectors of all watches have together: each requirement takes memory for as long as its watch goes on, and is
 * asked of each change.
 */

import { tooManyRequests } from '../../../machinery/status.ts';
import type { WatchOptions } from '../../../ports/backend.ts';

/** 64 selectors as long as a head may be, with 1000 requirements each. */
const LIMIT_CHARS = 1024 * 1024;
/** A selector up to this length is never refused: long ones do not keep ordinary clients from watching. */
const SHORT_CHARS = 256;

export interface SelectorRoom {
  /** Takes room for the selectors, until the function is called that it returns. Throws 429 TooManyRequests. */
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
