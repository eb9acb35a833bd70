/**
 * Startup, liveness and readiness probes: when each is due, what its results amount to, what follows.
 *
 * Source: Configure Liveness, Readiness and Startup Probes (v1.33). A startup probe holds the others off until it has
 * passed once; a startup or liveness probe that fails ends the run; readiness alone decides on Ready. Once the Pod ends,
 * only readiness is probed any more.
 */
import type { Container, Probe } from '../api/generated/types.ts';
import type { Millis } from '../machinery/time.ts';
import { hasStarted, killingMessage, MINIMUM_GRACE_SECONDS } from './hooks.ts';
import { graceMillis, type Turn } from './turn.ts';
import { actionKey, type ContainerState, type ProbeKind, type ProbeMemory, runKey } from './types.ts';
import type { ContainerView } from './view.ts';

const KINDS: readonly ProbeKind[] = ['startup', 'liveness', 'readiness'];

export function probeOf(container: ContainerView, kind: ProbeKind): Probe | undefined {
  const { startupProbe, livenessProbe, readinessProbe } = container.spec as Container;
  return { startup: startupProbe, liveness: livenessProbe, readiness: readinessProbe }[kind];
}

/** Counts the results that have come in; a failed startup or liveness probe marks its run for the end. */
export function countProbes(turn: Turn): void {
  eachProbe(turn, (container, run, kind, probe) => {
    const key = runKey(run.id, kind);
    const before = turn.probes[key] ?? firstDue(run, probe);
    turn.probes[key] = before;
    const result = turn.view.observed.probes[key];
    if (result === undefined || result.serial <= before.serial) return;
    const after = count(before, result.serial, result.result, probe);
    const succeeded = container.kind === 'defer' && result.result === 'Success';
    turn.probes[key] = succeeded ? { ...after, succeededAt: turn.now } : after;
    if (kind !== 'readiness' && after.passing === false && turn.stops[run.id] === undefined) {
      const restart = restartsOnFailure(turn, container);
      turn.stops[run.id] = {
        message: killingMessage(container, `failed ${kind} probe`, restart),
        deadline: turn.now + graceAfter(turn, container, probe),
        at: turn.now,
        restart,
      };
    }
  });
}

const restartsOnFailure = ({ view }: Turn, { kind, spec }: ContainerView): boolean =>
  (kind === 'defer' ? (spec as Container).restartPolicy : view.restartPolicy) !== 'Never';

/** A defer container that failed must not take the time of those after it. */
function graceAfter({ view }: Turn, { kind }: ContainerView, probe: Probe): Millis {
  const { terminationGracePeriodSeconds: own } = probe;
  if (own !== undefined) return own * 1000;
  return kind === 'defer' ? MINIMUM_GRACE_SECONDS * 1000 : graceMillis(view);
}

/** Asks for the probes that are due. `isEnding`: of such a container only readiness is still probed. */
export function runProbes(turn: Turn, isEnding: (container: ContainerView) => boolean): void {
  eachProbe(turn, (container, run, kind, probe) => {
    if (!isWanted(turn, container, run, kind, isEnding(container))) return;
    const key = runKey(run.id, kind);
    const memory = turn.probes[key] ?? firstDue(run, probe);
    const action = { kind: 'runProbe', container: container.spec.name, id: run.id, probe: kind } as const;
    if (turn.plan.pending(actionKey(action))) return;
    if (memory.dueAt > turn.now) {
      turn.plan.wake(memory.dueAt);
      return;
    }
    turn.plan.act(action);
    turn.probes[key] = { ...memory, dueAt: nextDue(memory.dueAt, turn.now, probe) };
  });
}

/** The container has passed what must pass before it counts as started. */
export function isStarted(turn: Pick<Turn, 'probes' | 'view'>, container: ContainerView): boolean {
  const run = container.current;
  if (run?.state !== 'running' || !hasStarted(turn.view, container, run)) return false;
  return probeOf(container, 'startup') === undefined || turn.probes[runKey(run.id, 'startup')]?.passing === true;
}

export function isReady(turn: Pick<Turn, 'probes' | 'view'>, container: ContainerView): boolean {
  const run = container.current;
  if (run === undefined || !isStarted(turn, container)) return false;
  return probeOf(container, 'readiness') === undefined || turn.probes[runKey(run.id, 'readiness')]?.passing === true;
}

function isWanted(
  turn: Turn,
  container: ContainerView,
  run: ContainerState,
  kind: ProbeKind,
  ending: boolean,
): boolean {
  if (kind === 'readiness') return isStarted(turn, container);
  if (ending || turn.stops[run.id] !== undefined) return false;
  if (kind === 'liveness') return isStarted(turn, container);
  return hasStarted(turn.view, container, run) && !isStarted(turn, container);
}

function eachProbe(
  turn: Turn,
  visit: (container: ContainerView, run: ContainerState, kind: ProbeKind, probe: Probe) => void,
): void {
  for (const container of turn.view.all) {
    if (container.current?.state !== 'running') continue;
    for (const kind of KINDS) {
      const probe = probeOf(container, kind);
      if (probe !== undefined) visit(container, container.current, kind, probe);
    }
  }
}

function count(before: ProbeMemory, serial: number, result: string, probe: Probe): ProbeMemory {
  if (result === 'Unknown') return { ...before, serial };
  const success = result !== 'Failure';
  const successes = success ? before.successes + 1 : 0;
  const failures = success ? 0 : before.failures + 1;
  const decided = success ? successes >= (probe.successThreshold ?? 1) : failures >= (probe.failureThreshold ?? 3);
  return { ...before, serial, successes, failures, ...(decided ? { passing: success } : {}) };
}

const firstDue = (run: ContainerState, probe: Probe): ProbeMemory => ({
  serial: 0,
  dueAt: (run.startedAt ?? run.createdAt) + (probe.initialDelaySeconds ?? 0) * 1000,
  successes: 0,
  failures: 0,
});

/** The next time on the probe's own grid, so that it does not drift; what was missed meanwhile is not made up for. */
function nextDue(due: Millis, now: Millis, probe: Probe): Millis {
  const period = (probe.periodSeconds ?? 10) * 1000;
  return due + period * (Math.floor((now - due) / period) + 1);
}
