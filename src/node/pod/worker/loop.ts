/** Invariants: there is one observation and one decision at a time. There is no polling: only wake-ups and a timer continue the loop. */
import type { Pod } from '../../../api/generated/types.ts';
import type { Millis } from '../../../machinery/time.ts';
import type { Log, Timer, Timers } from '../../../platform/platform.ts';
import { inTurns } from './turns.ts';

const RETRY_MILLIS = 1000;

export interface LoopOptions {
  timers: Timers;
  log: Log;
  signal: AbortSignal;
  pod(): Pod;
  mustObserve: boolean;
  /** Whether an action has ended and waits for an observation that has not started yet. */
  isObservationDue(): boolean;
  observe(): Promise<void>;
  decide(): void;
}

export interface WorkerLoop {
  /**
   * Called when the input of the decision has changed. Decides, after an observation if one is needed. After the first decision, a call
   * during an observation decides with the previous observation instead of waiting.
   */
  wake(): void;
  /** Called when the state in the runtime may have changed. The next wake-up observes. */
  mustObserve(): void;
  /** Sets the loop's only timer, which calls wake(). Undefined: cancels the timer. */
  wakeAt(at: Millis | undefined): void;
}

export function createWorkerLoop(options: LoopOptions): WorkerLoop {
  const { timers, signal } = options;
  let { mustObserve } = options;
  let isRunning = false;
  let isDeciding = false;
  let hasDecided = false;
  let timer: Timer | undefined;

  const wakeNow = (): void => {
    if (isDeciding || signal.aborted) return;
    if (!isRunning) void run();
    else if (hasDecided) decide();
  };
  const wake = inTurns(options.pod, wakeNow);

  const isObservationDue = (): boolean => mustObserve || options.isObservationDue();

  const run = async (): Promise<void> => {
    isRunning = true;
    try {
      do {
        if (isObservationDue()) {
          // Reset before the observation, so that a change during it causes another observation.
          mustObserve = false;
          await options.observe();
        }
        if (!signal.aborted) decide();
      } while (isObservationDue() && !signal.aborted);
    } catch (error) {
      mustObserve = true;
      failed(error);
    } finally {
      isRunning = false;
    }
  };

  const decide = (): void => {
    isDeciding = true;
    try {
      options.decide();
      hasDecided = true;
    } catch (error) {
      failed(error);
    } finally {
      isDeciding = false;
    }
  };

  const failed = (error: unknown): void => {
    if (signal.aborted) return;
    options.log.error('pod worker failed', { error: String(error) });
    wakeAt(timers.now() + RETRY_MILLIS);
  };

  const wakeAt = (at: Millis | undefined): void => {
    timer?.cancel();
    timer = at === undefined ? undefined : timers.at(at, wake);
  };

  return {
    wake,
    mustObserve() {
      mustObserve = true;
    },
    wakeAt,
  };
}
