import type { Action, ContainerState } from '../../../lifecycle/types.ts';
import type { Millis } from '../../../machinery/time.ts';
import type { RuntimeView } from './ports.ts';

export const CHANGES_RUNTIME: ReadonlySet<Action['kind']> = new Set<Action['kind']>([
  'createSandbox',
  'startContainer',
  'stopContainer',
  'removeContainer',
  'stopSandbox',
  'removeSandbox',
]);

/** Actions whose calls may take long. If such a call ends without an answer, the runtime counts as answering until the call's end. */
const TAKES_TIME: ReadonlySet<Action['kind']> = new Set<Action['kind']>([
  'stopContainer',
  'stopSandbox',
  'pullImage',
  'mountVolumes',
]);

/** Actions that run in a container or connect to it. If their result is missing, the container may have exited. */
const RUNS_INSIDE: ReadonlySet<Action['kind']> = new Set<Action['kind']>(['runProbe', 'runHook']);

/**
 * Returns the time since which the runtime counts as not answering, after a call whose outcome is unknown; undefined if the runtime may
 * have answered all the time.
 */
export function unansweredSince({ kind }: Action, began: Millis, ended: Millis): Millis | undefined {
  if (RUNS_INSIDE.has(kind)) return undefined;
  return TAKES_TIME.has(kind) ? ended : began;
}

/** Actions that destroy the evidence of how a run ended. */
export const FORGETS: ReadonlySet<Action['kind']> = new Set<Action['kind']>([
  'removeContainer',
  'removeSandbox',
  'finalizeDeletion',
]);
/** Steps that do not show how a run ended. An action in FORGETS does not wait for the record of these steps from the same decision. */
export const LAST_STEPS: ReadonlySet<string> = new Set(['SandboxStopped', 'Removed', 'Gone']);

interface RunIndex {
  byId: ReadonlyMap<string, ContainerState>;
  byAttempt: ReadonlyMap<string, ContainerState>;
  exitedAttempts: ReadonlySet<string>;
  inUse: ReadonlySet<string>;
}

const indexes = new WeakMap<RuntimeView, RunIndex>();
const attemptKey = ({ name, attempt }: Pick<ContainerState, 'name' | 'attempt'>): string => `${name}/${attempt}`;

/** Caches the index per view, since thousands of actions may end between two observations of thousands of containers. */
function indexOf(view: RuntimeView): RunIndex {
  const { containers } = view;
  const index = indexes.get(view) ?? {
    byId: new Map(containers.map((run) => [run.id, run])),
    byAttempt: new Map(containers.toReversed().map((run) => [attemptKey(run), run])),
    exitedAttempts: new Set(containers.filter(({ state }) => state === 'exited').map(attemptKey)),
    inUse: new Set(containers.filter(({ state }) => state !== 'exited').map(({ sandboxId }) => sandboxId)),
  };
  indexes.set(view, index);
  return index;
}

/**
 * Whether the view already shows the final effect of the action, so that no further observation is needed: an event of the runtime may
 * arrive before the response to the action.
 */
export function shows(view: RuntimeView, action: Action): boolean {
  switch (action.kind) {
    case 'startContainer':
      return indexOf(view).exitedAttempts.has(attemptKey({ name: action.container, attempt: action.attempt }));
    case 'stopContainer':
      return indexOf(view).byId.get(action.id)?.state === 'exited';
    case 'stopSandbox':
      return view.sandboxes.some(({ id, ready }) => id === action.id && !ready) && !indexOf(view).inUse.has(action.id);
    default:
      return false;
  }
}

/**
 * Describes the missing effect of an action that succeeded; undefined if the action had its effect, or is not in CHANGES_RUNTIME. The view
 * must be from an observation that started after the action ended, unless shows() is true for the view.
 */
export function missingEffect(view: RuntimeView, action: Action): string | undefined {
  const sandbox = (id: string) => view.sandboxes.find((each) => each.id === id);
  const container = (id: string) => indexOf(view).byId.get(id);
  switch (action.kind) {
    case 'createSandbox':
      return view.sandboxes.some(({ attempt }) => attempt === action.attempt)
        ? undefined
        : 'the sandbox does not exist';
    case 'startContainer': {
      const run = indexOf(view).byAttempt.get(attemptKey({ name: action.container, attempt: action.attempt }));
      if (run === undefined) return `container ${action.container} does not exist`;
      return run.state === 'created' ? `container ${action.container} has not started` : undefined;
    }
    case 'stopContainer':
      return ['running', 'unknown'].includes(container(action.id)?.state ?? '')
        ? `container ${action.id} still runs`
        : undefined;
    case 'removeContainer':
      return container(action.id) === undefined ? undefined : `container ${action.id} still exists`;
    case 'stopSandbox':
      return sandbox(action.id)?.ready ? `sandbox ${action.id} is still ready` : undefined;
    case 'removeSandbox':
      return sandbox(action.id) === undefined ? undefined : `sandbox ${action.id} still exists`;
    default:
      return undefined;
  }
}
