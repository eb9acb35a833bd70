/**
 * Whether a container that ended runs again, and when.
 * Source: Pod Lifecycle, "Container restarts" (v1.33): the first restart is immediate, then 10 s, 20 s, 40 s, … up to
 * 5 min; a run of 10 min resets it. Init containers of a Pod with restartPolicy Always restart on failure.
 */
import type { Millis } from '../machinery/time.ts';
import type { Stops } from './stops.ts';
import type { ContainerState, Failure } from './types.ts';
import type { ContainerView, PodView } from './view.ts';

export const BACKOFF_INITIAL_SECONDS = 10;
export const BACKOFF_MAX_SECONDS = 300;
export const BACKOFF_RESET_SECONDS = 600;

/** A termination is short: its containers wait less. Source: the specification of defer containers. */
export const DEFER_BACKOFF_INITIAL_SECONDS = 1;
export const DEFER_BACKOFF_MAX_SECONDS = 10;

/** Is there to be another run after this one? Of defer containers defer.ts decides. */
export function wantsRestart(
  container: ContainerView,
  policy: PodView['restartPolicy'],
  run: ContainerState,
  stops: Stops,
): boolean {
  if (container.kind === 'ephemeral' || container.kind === 'defer') return false;
  if (container.sidecar || stops[run.id]?.restart === true) return true;
  if (container.kind === 'init') return policy !== 'Never' && run.exitCode !== 0;
  if (policy === 'Always') return true;
  return policy === 'OnFailure' && run.exitCode !== 0;
}

export interface Restart {
  /** When the next run may start. */
  at: Millis;
  /** Seconds waited, as CrashLoopBackOff tells them. */
  delaySeconds: number;
  /** What the next run has to wait after its own end. */
  nextBackoffSeconds: number;
}

export function restartAfter(run: ContainerState, stops: Stops): Restart {
  const finishedAt = run.finishedAt ?? run.createdAt;
  if (stops[run.id]?.replaced === true) return { at: finishedAt, delaySeconds: 0, nextBackoffSeconds: 0 };
  const ranMillis = finishedAt - (run.startedAt ?? finishedAt);
  const delaySeconds = ranMillis >= BACKOFF_RESET_SECONDS * 1000 ? 0 : run.backoffSeconds;
  return {
    at: finishedAt + delaySeconds * 1000,
    delaySeconds,
    nextBackoffSeconds:
      run.kind === 'defer'
        ? Math.min(DEFER_BACKOFF_MAX_SECONDS, Math.max(DEFER_BACKOFF_INITIAL_SECONDS, delaySeconds * 2))
        : Math.min(BACKOFF_MAX_SECONDS, Math.max(BACKOFF_INITIAL_SECONDS, delaySeconds * 2)),
  };
}

/** Image pulls: 10 s doubling to 5 min. Source: Images, "ImagePullBackOff" (v1.33). */
export const pullRetryAt = (failure: Failure): Millis =>
  failure.at + Math.min(BACKOFF_MAX_SECONDS, BACKOFF_INITIAL_SECONDS * 2 ** (failure.count - 1)) * 1000;

/** Everything else that a runtime or a volume may refuse: 1 s doubling to 10 s, for most of it passes by itself. */
export const retryAt = (failure: Failure): Millis => failure.at + Math.min(10, 2 ** (failure.count - 1)) * 1000;
