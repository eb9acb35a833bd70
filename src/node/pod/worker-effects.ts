/** What the actions of a Pod's worker change in what the runtime shows of the Pod. */
import type { Action, ContainerState } from '../../lifecycle/types.ts';
import type { Millis } from '../../machinery/time.ts';
import type { RuntimeView } from './worker-ports.ts';

/** After these the runtime shows something new; the others bring all that they have to say. */
export const CHANGES_RUNTIME: ReadonlySet<Action['kind']> = new Set<Action['kind']>([
  'createSandbox',
  'startContainer',
  'stopContainer',
  'removeContainer',
  'stopSandbox',
  'removeSandbox',
]);

/** The calls of these last as long as what they wait for: they were answered until they ended. */
const TAKES_TIME: ReadonlySet<Action['kind']> = new Set<Action['kind']>([
  'stopContainer',
  'stopSandbox',
  'pullImage',
  'mountVolumes',
]);

/** These run in a container, and have no result where it ends meanwhile. */
const RUNS_INSIDE: ReadonlySet<Action['kind']> = new Set<Action['kind']>(['runProbe', 'runHook']);

/** From when on the runtime did not answer, where a call has no outcome; undefined: it may have answered all the time. */
export function unansweredSince({ kind }: Action, began: Millis, ended: Millis): Millis | undefined {
  if (RUNS_INSIDE.has(kind)) return undefined;
  return TAKES_TIME.has(kind) ? ended : began;
}

/** After these nothing shows how a run ended. */
export const FORGETS: ReadonlySet<Action['kind']> = new Set<Action['kind']>([
  'removeContainer',
  'removeSandbox',
  'finalizeDeletion',
]);
/** Written while the things that they are about go: an agent that begins anew sees by itself that nothing is left. */
export const LAST_STEPS: ReadonlySet<string> = new Set(['SandboxStopped', 'Removed', 'Gone']);

interface RunIndex {
  byId: ReadonlyMap<string, ContainerState>;
  /** The first of each, as attemptKey() names it. */
  byAttempt: ReadonlyMap<string, ContainerState>;
  exitedAttempts: ReadonlySet<string>;
  /** The sandboxes with a container that has not exited. */
  inUse: ReadonlySet<string>;
}

const indexes = new WeakMap<RuntimeView, RunIndex>();
const attemptKey = ({ name, attempt }: Pick<ContainerState, 'name' | 'attempt'>): string => `${name}/${attempt}`;

/** Kept with the view: thousands of actions may end between two observations of thousands of containers. */
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

/** Events may have brought the effect of an action before its answer. */
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
 * What is wrong with an action that succeeded, as an observation shows that was begun after its end; undefined: it had its effect.
 * An action without effect counts as failed, so that it backs off and is reported.
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
