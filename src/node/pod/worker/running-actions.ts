/**
 * Tracks the actions of a Pod's worker from their start until their effect is known.
 *
 * Invariants:
 * - An action that changes the runtime, or has an unknown outcome, stays in flight until its effect is observed. Otherwise, a decision
 *   could see an action that is neither under way nor done.
 * - An action that succeeded but had no effect counts as failed.
 * - A failure with an unchanged message is logged as a warning once, because the retries may go on for days.
 */
import { type Action, actionKey } from '../../../lifecycle/types.ts';
import type { Millis } from '../../../machinery/time.ts';
import { CHANGES_RUNTIME, missingEffect, shows } from './effects.ts';
import type { RuntimeView, WorkerPorts } from './ports.ts';
import type { WorkerState } from './state.ts';

export interface Flight {
  action: Action;
  key: string;
  abort: AbortController;
  /** When the call started; before that, when the action was requested. */
  began: Millis;
}

export interface WorkerFlights {
  begin(action: Action): Flight;
  /** Ends the flight, now or after an observation. `unknown`: the runtime did not answer. */
  end(flight: Flight, outcome: 'succeeded' | 'failed' | 'unknown'): void;
  /** Ends the flight of the action with this key without an observation of its effect. */
  drop(key: string): void;
  cancel(key: string): void;
  abortAll(): void;
  underWay(): Action[];
  isUnderWay(key: string): boolean;
  /** Whether an action has ended and waits for an observation that has not started yet. */
  isObservationDue(): boolean;
  /**
   * Called when an observation starts. Returns functions with which the caller reports whether the observation succeeded. An action that
   * ends in the meantime waits for the next observation, unless this one already shows its effect.
   */
  observing(): { succeeded(): void; failed(): void };
  noteFailure(action: Action, error: unknown): void;
}

export function createWorkerFlights(
  state: WorkerState,
  { timers, log }: Pick<WorkerPorts, 'timers' | 'log'>,
): WorkerFlights {
  const inFlight = new Map<string, Flight>();
  type Ended = Pick<Flight, 'action' | 'key'> & { succeeded: boolean };
  let ended: Ended[] = [];
  /** The last logged message of each failed action, by retryKey(). */
  const warned = new Map<string, string>();

  /** An action that succeeded counts as failed if the last observation does not show its effect. */
  const settle = ({ action, key, succeeded }: Ended): void => {
    inFlight.delete(key);
    const missing = succeeded ? missingEffect(state.runtime, action) : undefined;
    if (missing !== undefined) {
      if (action.kind === 'stopSandbox') state.stoppedSandboxes.delete(action.id);
      noteFailure(action, new Error(`${action.kind} succeeded and had no effect: ${missing}`));
    } else if (succeeded) state.failures.succeeded(action);
  };

  const noteFailure = (action: Action, error: unknown): void => {
    const before = state.failures.observed();
    const { message } = state.failures.failed(action, error, timers.now());
    const fields = logFields(action, error, state.runtime);
    const key = retryKey(action);
    const isRepeated = warned.get(key) === message && before.some((each) => retryKey(each.action) === key);
    warned.set(key, message);
    log[isRepeated ? 'debug' : 'warn']('action failed', { ...fields, message });
  };

  return {
    begin(action) {
      const flight = { action, key: actionKey(action), abort: new AbortController(), began: timers.now() };
      inFlight.set(flight.key, flight);
      return flight;
    },
    end({ action, key }, outcome) {
      const each = { action, key, succeeded: outcome === 'succeeded' };
      const isSeen = !CHANGES_RUNTIME.has(action.kind) || shows(state.runtime, action);
      if (outcome !== 'unknown' && isSeen) settle(each);
      else ended.push(each);
    },
    drop: (key) => void inFlight.delete(key),
    cancel: (key) => inFlight.get(key)?.abort.abort(),
    abortAll() {
      for (const { abort } of inFlight.values()) abort.abort();
    },
    underWay: () => [...inFlight.values()].map(({ action }) => action),
    isUnderWay: (key) => inFlight.has(key),
    isObservationDue: () => ended.length > 0,
    observing() {
      const before = ended;
      ended = [];
      return {
        succeeded() {
          const isShown = Map.groupBy(ended, ({ action }) => shows(state.runtime, action));
          ended = isShown.get(false) ?? [];
          for (const each of [...before, ...(isShown.get(true) ?? [])]) settle(each);
        },
        failed() {
          ended = [...before, ...ended];
        },
      };
    },
    noteFailure,
  };
}

/** The key is the same for all attempts of the container. */
const retryKey = (action: Action): string => actionKey('attempt' in action ? { ...action, attempt: 0 } : action);

function logFields(action: Action, error: unknown, { containers }: RuntimeView): Record<string, unknown> {
  const { kind } = action;
  const id = 'id' in action ? action.id : undefined;
  const container = 'container' in action ? action.container : containers.find((each) => each.id === id)?.name;
  const volume = error instanceof Error && 'volume' in error ? error.volume : undefined;
  const image =
    'image' in action ? action.image : error instanceof Error && 'image' in error ? String(error.image) : undefined;
  const named = {
    container,
    attempt: 'attempt' in action ? action.attempt : undefined,
    image,
    volume,
    probe: 'probe' in action ? action.probe : undefined,
    hook: 'hook' in action ? action.hook : undefined,
    id,
  };
  return { action: kind, ...Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined)) };
}
