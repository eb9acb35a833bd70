/**
 * Lifecycle hooks, and how a run is brought to its end: preStop first, then the stop signal, then the kill.
 *
 * Source: Container Lifecycle Hooks and Termination of Pods (v1.33). A container counts as running once its postStart hook has
 * succeeded, and is killed where it fails. preStop counts against the grace period; where it takes longer, the
 * processes still get 2 s between signal and kill. A hook may run twice where the agent crashed meanwhile.
 */
import type { Millis } from '../machinery/time.ts';
import { graceMillis, type Turn } from './turn.ts';
import { actionKey, type ContainerState, runKey } from './types.ts';
import type { ContainerView, PodView } from './view.ts';

/** The least that processes get between signal and kill, however little is left. Source: v1.33, kubelet. */
export const MINIMUM_GRACE_SECONDS = 2;

/** Its postStart hook, if any, has succeeded. */
export const hasStarted = (view: PodView, container: ContainerView, run: ContainerState): boolean => {
  if (container.spec.lifecycle?.postStart === undefined) return true;
  const result = view.observed.hooks[runKey(run.id, 'postStart')];
  return result !== undefined && result.failure === undefined;
};

/** Runs the postStart hooks of what has begun to run; marks for the end what failed in them. */
export function runPostStartHooks(turn: Turn): void {
  for (const container of turn.view.all) {
    const run = container.current;
    if (run?.state !== 'running' || container.spec.lifecycle?.postStart === undefined) continue;
    if (turn.stops[run.id] !== undefined) continue;
    const result = turn.view.observed.hooks[runKey(run.id, 'postStart')];
    if (result === undefined)
      turn.plan.act({ kind: 'runHook', container: container.spec.name, id: run.id, hook: 'postStart' });
    else if (result.failure !== undefined)
      turn.stops[run.id] ??= {
        message: 'FailedPostStartHook',
        deadline: turn.now + graceMillis(turn.view),
        at: turn.now,
        restart: turn.view.restartPolicy !== 'Never',
      };
  }
}

/** A run whose container's image was changed makes way for one of the new image, whatever the restart policy. */
export function replaceChangedImages(turn: Turn): void {
  for (const container of [...turn.view.init, ...turn.view.apps]) {
    const run = container.current;
    if (run?.state !== 'running' || !isOutdated(container, run)) continue;
    turn.stops[run.id] ??= {
      message: killingMessage(container, 'definition changed', true),
      deadline: turn.now + graceMillis(turn.view),
      at: turn.now,
      restart: true,
      replaced: true,
    };
  }
}

/** Of the Event Killing: a sidecar is an init container, of which nobody says that it will be restarted. */
export const killingMessage = ({ kind, spec }: ContainerView, what: string, restart: boolean): string =>
  kind === 'init'
    ? `Init container ${spec.name} ${what}`
    : `Container ${spec.name} ${what}${restart ? ', will be restarted' : ''}`;

/** Init containers that have had their turn do not run again for a new image. Source: Init Containers (v1.33). */
export const isOutdated = (container: ContainerView, run: ContainerState): boolean =>
  (container.kind === 'app' || container.sidecar) &&
  container.spec.image !== undefined &&
  run.image !== container.spec.image;

/**
 * Asks for the next step of ending one run: its preStop hook until the deadline, then the stop signal, and the kill.
 * `killAt`: when it is killed; absent: at the deadline, but for the least that processes get.
 */
export function endRun(
  turn: Turn,
  run: ContainerState,
  container: ContainerView | undefined,
  deadline: Millis,
  killAt?: Millis,
): void {
  const { plan, now } = turn;
  if (container !== undefined && runPreStopHook(turn, run, container, deadline)) return;
  const signalledAt = turn.signalledAt[run.id] ?? now;
  turn.signalledAt[run.id] = signalledAt;
  plan.act({
    kind: 'stopContainer',
    id: run.id,
    deadline: killAt ?? Math.max(deadline, signalledAt + MINIMUM_GRACE_SECONDS * 1000),
  });
}

/** Until the deadline, unless it was signalled before. True while the hook runs. */
export function runPreStopHook(turn: Turn, run: ContainerState, container: ContainerView, deadline: Millis): boolean {
  const { plan, now, view } = turn;
  const preStop = { kind: 'runHook', container: run.name, id: run.id, hook: 'preStop' } as const;
  if (run.state !== 'running' || container.spec.lifecycle?.preStop === undefined) return false;
  if (view.observed.hooks[runKey(run.id, 'preStop')] !== undefined || turn.signalledAt[run.id] !== undefined)
    return false;
  if (now < deadline) {
    plan.act(preStop);
    plan.wake(deadline);
    return true;
  }
  if (plan.pending(actionKey(preStop))) plan.act({ kind: 'cancel', key: actionKey(preStop) });
  return false;
}
