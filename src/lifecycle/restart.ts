/** Source: Pod Lifecycle, "Container restarts" (v1.33). */
import type { Millis } from '../machinery/time.ts';
import { LONG, SHORT } from './effects.ts';
import type { ContainerState } from './types.ts';
import type { ContainerView, PodView } from './view.ts';

type Run = Pick<ContainerState, 'id' | 'state' | 'exitCode'>;

/** Whether another run follows. defer.ts has the rules for defer containers. */
export function wantsRestart(view: PodView, { kind, sidecar }: ContainerView, run: Run): boolean {
  const { restartPolicy, stops } = view;
  if (kind === 'ephemeral' || kind === 'defer') return false;
  if (sidecar || stops[run.id]?.restart === true || (kind === 'app' && restartPolicy === 'Always')) return true;
  // With restartPolicy Always, init containers restart only on failure, as with OnFailure.
  return restartPolicy !== 'Never' && run.exitCode !== 0;
}

/** Returns the last run. If the runtime has none, as after a restore, the status decides: a run whose end it does not show has failed. */
export function lastRun({ latest, recorded }: ContainerView): Run | undefined {
  const { running, terminated } = recorded?.state ?? {};
  if (latest !== undefined || (running === undefined && terminated === undefined)) return latest;
  return { id: '', state: 'exited', exitCode: terminated?.exitCode ?? 137 };
}

export function hasEndedForGood(view: PodView, container: ContainerView): boolean {
  const run = lastRun(container);
  return run?.state === 'exited' && !wantsRestart(view, container, run);
}

export interface Restart {
  at: Millis;
  delaySeconds: number; // Shown in the CrashLoopBackOff message.
  nextBackoffSeconds: number;
}

const RESET_AFTER_MILLIS = 600_000;

export function restartAfter(run: ContainerState, stops: PodView['stops']): Restart {
  const finishedAt = run.finishedAt ?? run.createdAt;
  if (stops[run.id]?.replaced === true) return { at: finishedAt, delaySeconds: 0, nextBackoffSeconds: 0 };
  const ranMillis = finishedAt - (run.startedAt ?? finishedAt);
  const delaySeconds = ranMillis >= RESET_AFTER_MILLIS ? 0 : run.backoffSeconds;
  // A termination is short, so defer containers back off for less time. Source: the specification of defer containers.
  const { first, longest } = run.kind === 'defer' ? SHORT : LONG;
  const nextBackoffSeconds = Math.min(longest, Math.max(first, delaySeconds * 2));
  return { at: finishedAt + delaySeconds * 1000, delaySeconds, nextBackoffSeconds };
}
