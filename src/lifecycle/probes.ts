/** Source: Configure Liveness, Readiness and Startup Probes (v1.33). */
import type { Container, Probe } from '../api/generated/types.ts';
import type { Millis } from '../machinery/time.ts';
import { act, type Rule, wake } from './effects.ts';
import { hasStarted, killingMessage, MINIMUM_GRACE_MILLIS } from './hooks-and-stops.ts';
import type { ContainerState, ProbeKind, ProbeMemory, ProbeResult, Stop } from './types.ts';
import { actionKey, PROBE_KINDS, runKey } from './types.ts';
import type { ContainerView, PodView } from './view.ts';

export const periodMillis = (probe: Probe | undefined): Millis => (probe?.periodSeconds ?? 10) * 1000;
export const timeoutMillis = (probe: Probe | undefined): Millis => (probe?.timeoutSeconds ?? 1) * 1000;

export const probeOf = ({ spec }: ContainerView, kind: ProbeKind): Probe | undefined =>
  (spec as Container)[`${kind}Probe` as const];

function* probesOf({ all, probes }: PodView) {
  for (const container of all)
    for (const kind of PROBE_KINDS) {
      const { current: run } = container;
      const probe = probeOf(container, kind);
      if (run?.state !== 'running' || probe === undefined) continue;
      const key = runKey(run.id, kind);
      const dueAt = (run.startedAt ?? run.createdAt) + (probe.initialDelaySeconds ?? 0) * 1000;
      const memory: ProbeMemory = probes[key] ?? { serial: 0, dueAt, successes: 0, failures: 0 };
      yield { container, run, kind, probe, key, memory };
    }
}

export function countedProbes(view: PodView): Record<string, ProbeMemory> {
  const counted = { ...view.probes };
  for (const { key, probe, memory } of probesOf(view))
    counted[key] = count(memory, view.observed.probes[key], probe, view.now);
  return counted;
}

/** Returns why a failed startup or liveness probe ends the run; undefined if neither has failed. */
export function stopOfProbes(view: PodView, container: ContainerView, run: ContainerState): Stop | undefined {
  const failed = (kind: ProbeKind): boolean => view.probes[runKey(run.id, kind)]?.passing === false;
  const kind = (['startup', 'liveness'] as const).find(failed);
  if (kind === undefined) return undefined;
  const isDefer = container.kind === 'defer';
  const policy = isDefer ? (container.spec as Container).restartPolicy : view.restartPolicy;
  const restart = (policy ?? 'Never') !== 'Never';
  // A failed defer container must not use up the time of the defer containers after it.
  const graceMillis = isDefer ? MINIMUM_GRACE_MILLIS : view.graceMillis;
  const own = probeOf(container, kind)?.terminationGracePeriodSeconds;
  const deadline = view.now + (own === undefined ? graceMillis : own * 1000);
  return { message: killingMessage(container, `failed ${kind} probe`, restart), at: view.now, deadline, restart };
}

/** An ending container is probed for readiness only. */
export function* dueProbes(view: PodView, isEnding: (container: ContainerView) => boolean): Rule {
  const { now, stops } = view;
  for (const { container, run, kind, probe, key, memory } of probesOf(view)) {
    const started = isStarted(view, container);
    if (kind === 'startup' ? started || !hasStarted(view, container, run) : !started) continue;
    if (kind !== 'readiness' && (isEnding(container) || stops[run.id] !== undefined)) continue;
    const action = { kind: 'runProbe', container: run.name, id: run.id, probe: kind } as const;
    if (view.isUnderWay(actionKey(action))) continue;
    const { dueAt } = memory;
    const periods = Math.floor((now - dueAt) / periodMillis(probe)) + 1;
    if (dueAt > now) yield wake(dueAt);
    else {
      yield act(action);
      // The times do not drift: the next probe is due a whole number of periods after the last one. Missed probes are not repeated.
      yield { probe: key, memory: { ...memory, dueAt: dueAt + periods * periodMillis(probe) } };
    }
  }
}

const hasPassed = (view: PodView, container: ContainerView, kind: ProbeKind): boolean =>
  probeOf(container, kind) === undefined || view.probes[runKey(container.current?.id ?? '', kind)]?.passing === true;

export function isStarted(view: PodView, container: ContainerView): boolean {
  const run = container.current;
  return run?.state === 'running' && hasStarted(view, container, run) && hasPassed(view, container, 'startup');
}

export const isReady = (view: PodView, container: ContainerView): boolean =>
  isStarted(view, container) && hasPassed(view, container, 'readiness');

function count(before: ProbeMemory, newest: ProbeResult | undefined, probe: Probe, now: Millis): ProbeMemory {
  if (newest === undefined || newest.serial <= before.serial) return before;
  const { serial, result } = newest;
  if (result === 'Unknown') return { ...before, serial };
  const passing = result !== 'Failure';
  const successes = passing ? before.successes + 1 : 0;
  const failures = passing ? 0 : before.failures + 1;
  const isDecided = passing ? successes >= (probe.successThreshold ?? 1) : failures >= (probe.failureThreshold ?? 3);
  const succeededAt = result === 'Success' ? now : before.succeededAt;
  return { ...before, serial, successes, failures, passing: isDecided ? passing : before.passing, succeededAt };
}
