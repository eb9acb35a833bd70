/** Decides from the steps about the sandboxes of a Pod whether its containers have ended for good. Pure. */
import type { Transition } from '../../lifecycle/types.ts';

/** Returns whether the sandbox of `newest` has replaced that of the step. */
export const isOfEarlier = ({ attempt }: Transition, newest: Transition | undefined): boolean =>
  attempt !== undefined && newest?.attempt !== undefined && attempt < newest.attempt;

/**
 * Returns whether the containers have ended for good. A stopped sandbox alone does not show that: the node also stops a lost sandbox
 * before it creates another one.
 */
export function hasEnded(steps: readonly Transition[]): boolean {
  let ends = false;
  let stopped = false;
  let isLost = false;
  let newest: Transition | undefined;
  for (const step of steps) {
    const { type } = step;
    if (type === 'Removed' || type === 'Gone') return true;
    if (type === 'TerminationBegan' || type === 'Finished') ends = true;
    // No sandbox replaces a lost one in a Pod that has finished.
    if (type === 'Finished' && isLost) stopped = true;
    if (type === 'SandboxLost') isLost = true;
    if (type === 'SandboxReady') {
      stopped = false;
      isLost = false;
      newest = step;
    }
    if (type === 'SandboxStopped' && !isOfEarlier(step, newest)) stopped = true;
  }
  return ends && stopped;
}
