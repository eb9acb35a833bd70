/**
 * Gives many items, such as requests, the same time limit. The items reach their deadlines in the order in which they begin, so one timer
 * is enough: a timer for each request would cost more than all other limits on the request.
 */
import type { Millis } from '../../../machinery/time.ts';
import type { Timer, Timers } from '../../../platform/platform.ts';

export interface Deadlines<T> {
  /** Calls `late` with the item when its time is over, unless end() is called before. Call it once per item. */
  begin(item: T): void;
  /** Has no effect on an item that has not begun, or has ended. */
  end(item: T): void;
  /** From now on, cancels the timer as soon as no item is left. Before close(), the timer may outlive the items for which it was set. */
  close(): void;
}

export function createDeadlines<T>(timers: Timers, millis: Millis, late: (item: T) => void): Deadlines<T> {
  const items = new Map<T, Millis>();
  let timer: Timer | undefined;
  let isClosing = false;
  const arm = (): void => {
    const [earliest] = items.values();
    timer = earliest === undefined ? undefined : timers.at(earliest, pass);
  };
  const pass = (): void => {
    const now = timers.now();
    for (const [item, deadline] of items) {
      if (deadline > now) break;
      items.delete(item);
      late(item);
    }
    arm();
  };
  const cancelIfUnused = (): void => {
    if (!isClosing || items.size > 0) return;
    timer?.cancel();
    timer = undefined;
  };
  return {
    begin(item) {
      items.set(item, timers.now() + millis);
      if (timer === undefined) arm();
    },
    end(item) {
      if (items.delete(item)) cancelIfUnused();
    },
    close() {
      isClosing = true;
      cancelIfUnused();
    },
  };
}
