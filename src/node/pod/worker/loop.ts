/**
 * Runs the loop of a Pod's worker: observes if an observation is needed, decides, and repeats this while another observation is needed.
 *
 * Invariants: there is one observation and one decision at a time. There is no polling: only wake-ups and a timer continue the loop.
 */
import type { Pod } from '../../../api/generated/types.ts';
import type { Millis } from '../../../machinery/time.ts';
import type { Log, Timer, Timers } from '../../../platform/platform.ts';
import { inTurns } from './turns.ts';

/** The delay after a failure, such as a runtime that does not answer. The runtime's event stream may trigger an observation earlier. */
const RETRY_MILLIS = 1000;

export interface LoopOptions {
  timers: Timers;
  log: Log;
  /** Ends the loop when it aborts. */
  signal: AbortSignal;
  pod(): Pod;
  /** Whether the first decision needs an observation. */
  mustObserve: boolean;
  /** Whether an action has ended and waits for an observation that has not started yet. */
  isObservationDue(): boolean;
  observe(): Promise<void>;
  decide(): void;
}

export interface WorkerLoop {
  /**
   * Called when the input of the decision has changed: decides, after an observation if one is needed. If an observation is under way and
   * there was a decision before, decides with the previous observation instead of waiting. See inTurns() about Pods with many containers.
   */
  wake(): void;
  /** Called when the state in the runtime may have changed: the next wake-up observes. */
  mustObserve(): void;
  /** Sets the loop's only timer, which calls wake() at this time. Undefined: cancels the timer. */
  wakeAt(at: Millis | undefined): void;
}

export function createWorkerLoop(options: LoopOptions): WorkerLoop {
  const { timers, signal } = options;
  let { mustObserve } = options;
  let isRunning = false;
  let isDeciding = false;
  let hasDecided = false;
  let timer: Timer | undefined;

  /** Starts the loop or, if the loop is waiting for an observation and has decided before, decides. Does nothing during a decision. */
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
