import type { Action } from '../../../lifecycle/types.ts';
import { OutcomeUnknownError } from '../../../runtime/runtime.ts';
import type { StatusWriter } from '../status-writer.ts';
import { FORGETS, unansweredSince } from './effects.ts';
import type { WorkerLoop } from './loop.ts';
import type { Outcome, WorkerPorts } from './ports.ts';
import type { Flight, WorkerFlights } from './running-actions.ts';
import { absorb, type WorkerState } from './state.ts';

export interface ActionParts {
  ports: Pick<WorkerPorts, 'timers' | 'log' | 'execute'>;
  flights: WorkerFlights;
  statuses: Pick<StatusWriter, 'flushed'>;
  loop: Pick<WorkerLoop, 'wake' | 'mustObserve'>;
  signal: AbortSignal;
}

export interface WorkerActions {
  /** An action in FORGETS first waits for `recorded`, and finalizeDeletion also until the newest status is written. */
  perform(action: Action, recorded: Promise<void> | undefined): void;
  /** Ends a finalizeDeletion that the API accepted. */
  objectChanged(): void;
}

export function createWorkerActions(state: WorkerState, parts: ActionParts): WorkerActions {
  const { ports, flights, statuses, loop } = parts;
  /** Whether the last successful action is a finalizeDeletion that the API has accepted. */
  let deletionAnswered = false;

  const execute = (flight: Flight): Promise<Outcome> => {
    flight.began = ports.timers.now();
    return ports.execute(flight.action, state.pod, flight.abort.signal, (progress) => {
      state.images.progress(flight.key, progress);
      loop.wake();
    });
  };

  const succeeded = (flight: Flight, outcome: Outcome): void => {
    const { action } = flight;
    absorb(state, action, outcome);
    // The next change of the object shows whether the API deleted it or finalizers keep it. Until then, the action stays in flight.
    deletionAnswered = action.kind === 'finalizeDeletion' && !state.removed;
    if (deletionAnswered) state.failures.succeeded(action);
    // If the outcome of a start contains the state of the image, the image no longer exists and nothing was started.
    else end(flight, action.kind === 'startContainer' && outcome.image !== undefined ? 'failed' : 'succeeded');
  };

  const failed = (flight: Flight, error: unknown): void => {
    const isAborted = flight.abort.signal.aborted || parts.signal.aborted;
    const isUnknown = !isAborted && error instanceof OutcomeUnknownError;
    if (isUnknown) noteUnanswered(flight, error);
    else if (!isAborted) flights.noteFailure(flight.action, error);
    end(flight, isUnknown ? 'unknown' : 'failed');
  };

  const noteUnanswered = ({ action, began }: Flight, error: OutcomeUnknownError): void => {
    const since = unansweredSince(action, began, ports.timers.now());
    if (since !== undefined) state.outages.unanswered(since);
    loop.mustObserve();
    state.failures.unanswered(action, error, ports.timers.now());
    ports.log.warn('outcome unknown', { action: action.kind, message: error.message });
  };

  const end: WorkerFlights['end'] = (flight, outcome) => {
    state.images.ended(flight.action, flight.key);
    flights.end(flight, outcome);
    loop.wake();
  };

  return {
    perform(action, recorded) {
      if (action.kind === 'cancel') return flights.cancel(action.key);
      const flight = flights.begin(action);
      const ready = precondition(action, recorded, statuses);
      const result = ready === undefined ? execute(flight) : ready.then(() => execute(flight));
      result.then(
        (outcome) => succeeded(flight, outcome),
        (error) => failed(flight, error),
      );
    },
    objectChanged() {
      if (deletionAnswered) flights.drop('finalizeDeletion');
    },
  };
}

function precondition(
  { kind }: Action,
  recorded: Promise<void> | undefined,
  statuses: ActionParts['statuses'],
): Promise<unknown> | undefined {
  if (kind === 'finalizeDeletion') return Promise.all([statuses.flushed(), recorded]);
  return FORGETS.has(kind) ? recorded : undefined;
}
