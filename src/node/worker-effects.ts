/** What the actions of a Pod's worker do to what is seen of the Pod. */
import type { Action } from '../lifecycle/types.ts';
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

/** After these nothing shows how a run ended. */
export const FORGETS: ReadonlySet<Action['kind']> = new Set<Action['kind']>([
  'removeContainer',
  'removeSandbox',
  'finalizeDeletion',
]);
/** Written while what they tell of goes: an agent that begins anew sees by itself that nothing is left. */
export const LAST_STEPS: ReadonlySet<string> = new Set(['SandboxStopped', 'Removed', 'Gone']);

/** What events have brought sooner than the answer, as a rule. */
export function shows({ sandboxes, containers }: RuntimeView, action: Action): boolean {
  switch (action.kind) {
    case 'startContainer': {
      const { container, attempt } = action;
      return containers.some((run) => run.name === container && run.attempt === attempt && run.state === 'exited');
    }
    case 'stopContainer':
      return containers.some(({ id, state }) => id === action.id && state === 'exited');
    case 'stopSandbox':
      return (
        sandboxes.some(({ id, ready }) => id === action.id && !ready) &&
        containers.every(({ sandboxId, state }) => sandboxId !== action.id || state === 'exited')
      );
    default:
      return false;
  }
}
