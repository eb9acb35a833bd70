/** Decides from the steps about the sandboxes of a Pod whether its containers have ended for good. Pure. */
import type { Transition } from '../../lifecycle/types.ts';

/** Returns whether the sandbox of `newest` has replaced that of the step. */
export const isOfEarlier = ({ attempt }: Transition, newest: Transition | undefined): boolean =>
  attempt !== undefined && newest?.attempt !== undefined && attempt < newest.attempt;

/**
 * Returns whether the step, such as a stop signal, is about a run whose sandbox was lost while the Pod was not ending. The node creates
 * another sandbox only when all these runs have ended.
 */
export const isOfLostSandbox = ({ at }: Transition, steps: readonly Transition[]): boolean =>
  steps
    .filter((each) => each.at <= at && SANDBOX_STEPS.includes(each.type))
    .sort((a, b) => a.at - b.at)
    .at(-1)?.type === 'SandboxLost';

const SANDBOX_STEPS = ['SandboxReady', 'SandboxLost', 'TerminationBegan'];

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
