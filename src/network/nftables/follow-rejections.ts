import { backOffMillis } from '../../client/back-off.ts';
import { pause } from '../../platform/pause.ts';
import type { Timers } from '../../platform/platform.ts';
import type { Rejections } from './section.ts';

export interface FollowRejectionsOptions {
  timers: Timers;
  signal: AbortSignal;
  rejected(part: string, error: Error): void;
  /** Makes the component declare the parts again. */
  retry(parts: readonly string[]): void;
}

/**
 * The pauses grow, because nft rejects a faulty part until the part is changed. Other causes, such as a lack of memory, may disappear
 * sooner.
 */
const RETRY_BASE_MILLIS = 1000;
const RETRY_MAX_MILLIS = 300_000;

/**
 * Returns a function that must be called with each result of NftTable.set(). The function reports new rejections, and retries the rejected
 * parts after a pause.
 */
export function followRejections(options: FollowRejectionsOptions): (rejections: Rejections) => void {
  const { timers, signal } = options;
  let known: Rejections = new Map();
  let failures = 0;
  let isWaiting = false;
  const retryLater = async (): Promise<void> => {
    isWaiting = true;
    await pause(timers, backOffMillis(++failures, RETRY_BASE_MILLIS, RETRY_MAX_MILLIS), signal);
    isWaiting = false;
    if (!signal.aborted && known.size > 0) options.retry([...known.keys()]);
  };
  return (rejections) => {
    const before = known;
    known = rejections;
    for (const [part, error] of rejections) if (before.get(part) !== error) options.rejected(part, error);
    if (rejections.size === 0) failures = 0;
    else if (!isWaiting) void retryLater();
  };
}
