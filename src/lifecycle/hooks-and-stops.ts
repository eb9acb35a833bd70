/**
 * A hook may run more than once: after a crash of the agent, a hook without a recorded result runs again.
 * Source: Container Lifecycle Hooks and Termination of Pods (v1.33).
 */
import type { Millis } from '../machinery/time.ts';
import { act, type Effect, type Rule, wake } from './effects.ts';
import { actionKey, type ContainerState, type HookKind, runKey, type Stop } from './types.ts';
import { type ContainerView, containerOf, type PodView } from './view.ts';

/** The minimum time between stop signal and kill. Source: v1.33, kubelet. */
export const MINIMUM_GRACE_MILLIS = 2000;

function hookState(view: PodView, { spec }: ContainerView, { id }: ContainerState, hook: HookKind) {
  if (spec.lifecycle?.[hook] === undefined) return 'done';
  const result = view.observed.hooks[runKey(id, hook)];
  if (result === undefined) return 'due';
  return result.failure === undefined ? 'done' : 'failed';
}

export const hasStarted = (view: PodView, container: ContainerView, run: ContainerState): boolean =>
  hookState(view, container, run, 'postStart') === 'done';

export function* postStartHooks(view: PodView): Rule {
  for (const container of view.all) {
    const { current: run, name } = container;
    if (run?.state !== 'running' || (view.stops[run.id] ?? view.signalledAt[run.id]) !== undefined) continue;
    if (hookState(view, container, run, 'postStart') === 'due')
      yield act({ kind: 'runHook', container: name, id: run.id, hook: 'postStart' });
  }
}

/**
 * Returns why a run of a Pod that is not terminating is stopped; undefined if it is not. Only app containers and sidecars are restarted for
 * a new image. Source: Init Containers (v1.33).
 */
export function stopOfRun(view: PodView, container: ContainerView, run: ContainerState): Stop | undefined {
  const { now, graceMillis, restartPolicy } = view;
  const { kind, sidecar, spec } = container;
  const stop = { at: now, deadline: now + graceMillis };
  if (hookState(view, container, run, 'postStart') === 'failed')
    return { ...stop, message: 'FailedPostStartHook', restart: restartPolicy !== 'Never' };
  if (!(kind === 'app' || sidecar) || spec.image === undefined || run.image === spec.image) return undefined;
  return { ...stop, message: killingMessage(container, 'definition changed', true), restart: true, replaced: true };
}

/** As upstream, the message for an init container does not announce a restart. */
export const killingMessage = ({ kind, name }: ContainerView, why: string, restart: boolean): string =>
  kind === 'init' ? `Init container ${name} ${why}` : `Container ${name} ${why}${restart ? ', will be restarted' : ''}`;

/** Requests the next step of ending a run. The kill is due at `end`, but not within 2 s of the stop signal. */
export function* endRun(view: PodView, run: ContainerState, end: Millis): Rule {
  const container = containerOf(view, run);
  if (container !== undefined && (yield* preStop(view, run, container, end))) return;
  yield { signal: run.id };
  const deadline = Math.max(end, (view.signalledAt[run.id] ?? view.now) + MINIMUM_GRACE_MILLIS);
  // If `end` has moved later, the earlier kill is canceled and requested again.
  for (const stop of view.kills.get(run.id) ?? [])
    if (stop.deadline < deadline) yield act({ kind: 'cancel', key: actionKey(stop) });
  yield act({ kind: 'stopContainer', id: run.id, deadline });
}

/** Kills a run in the state unknown. The past deadline means that no stop signal is sent. */
export const kill = ({ id, createdAt: deadline }: ContainerState): Effect =>
  act({ kind: 'stopContainer', id, deadline });

/** Returns true while the hook may run. A run that has its stop signal gets no preStop hook. */
export function* preStop(view: PodView, run: ContainerState, container: ContainerView, end: Millis): Rule<boolean> {
  if (run.state !== 'running' || view.signalledAt[run.id] !== undefined) return false;
  if (hookState(view, container, run, 'preStop') !== 'due') return false;
  const hook = { kind: 'runHook', container: run.name, id: run.id, hook: 'preStop' } as const;
  const key = actionKey(hook);
  if (view.now < end) {
    yield act(hook);
    yield wake(end);
  } else if (view.isUnderWay(key)) yield act({ kind: 'cancel', key });
  return view.now < end;
}
