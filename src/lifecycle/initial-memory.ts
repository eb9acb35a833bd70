/** Rebuilds the memory of a new agent from the Pod's status, the runtime and the node's journal. */
import { recordedStatuses, shownId } from '../api/core/v1/pod/status/statuses.ts';
import { isTrue } from '../api/core/v1/pod/status/summary.ts';
import type { Pod } from '../api/generated/types.ts';
import { reduce } from './effects.ts';
import { probeOf } from './probes.ts';
import { reportOf } from './report.ts';
import { endingOf } from './termination-stages.ts';
import type { HookResult, Input, Journal, Memory, Observed, ProbeMemory } from './types.ts';
import { runKey } from './types.ts';
import { announcedAttempt, type ContainerView, succeeded, viewOf } from './view.ts';

export const emptyMemory = (): Memory => ({
  announced: new Set(),
  recorded: new Set(),
  interrupted: new Set(),
  unstarted: new Set(),
  probes: {},
  stops: {},
  signalledAt: {},
  ended: {},
});

/** Returns the memory and the results of earlier hooks. Events that follow from the status count as reported. */
export function rebuildMemory(input: Omit<Input, 'memory'>, journal: Journal) {
  const { pod, node } = input;
  const memory: Memory = { ...emptyMemory(), ...journal };
  const hooks: Record<string, HookResult> = { ...journal.preStops };
  const view = viewOf({ ...input, memory, observed: { ...asShown(input), hooks } });
  const { spec, sandbox } = view;
  const end = view.defers.length > 0 && pod.status?.termination !== undefined ? endingOf(view, false) : undefined;
  const { events } = reportOf({ view, end, finished: undefined, progress: 'preparing' }, reduce(view, []), false);
  const address = spec.hostNetwork === true ? node.ips[0] : sandbox?.ips[0];
  const isSameSandbox = sandbox?.ready === true && address !== undefined && address === pod.status?.podIP;
  const probes: Record<string, ProbeMemory> = {};
  for (const container of view.all) {
    const { current: run, recorded } = container;
    if (run === undefined || recorded?.state?.running === undefined || shownId(recorded) !== run.id) continue;
    // A status with state running is written only after the postStart hook has succeeded.
    hooks[runKey(run.id, 'postStart')] = {};
    const passed = { serial: 0, dueAt: run.startedAt ?? run.createdAt, successes: 1, failures: 0, passing: true };
    if (recorded.started && probeOf(container, 'startup')) probes[runKey(run.id, 'startup')] = passed;
    if (recorded.ready && probeOf(container, 'readiness')) probes[runKey(run.id, 'readiness')] = passed;
  }
  const rebuilt: Memory = {
    ...memory,
    announced: new Set(events.keys()),
    probes,
    interrupted: new Set(view.defers.flatMap((container) => cutOff(container, pod) ?? [])),
    unstarted: new Set(view.all.flatMap(({ latest }) => (latest?.state === 'created' ? latest.id : []))),
    ...(isSameSandbox && isTrue(pod, 'Initialized') ? { initializedInSandbox: sandbox.attempt } : {}),
  };
  return { memory: rebuilt, hooks };
}

/** Shows sandboxes and runs in the states of the status, so that later states are reported as Events. */
function asShown({ pod, observed }: Pick<Input, 'pod' | 'observed'>): Observed {
  const wasReady = isTrue(pod, 'PodReadyToStartContainers');
  const ran = new Set(recordedStatuses(pod).map((status) => (status.state?.running ? shownId(status) : undefined)));
  return {
    ...observed,
    outages: [],
    sandboxes: observed.sandboxes.map((sandbox) => ({ ...sandbox, ready: wasReady || sandbox.ready })),
    containers: observed.containers.map((run) => (ran.has(run.id) ? { ...run, state: 'running' } : run)),
  };
}

/** Returns the last run's ID if the agent may have died during the start of the run, and the status does not show the run. */
function cutOff({ latest, recorded }: ContainerView, pod: Pod): string | undefined {
  if (latest === undefined || ['created', 'running'].includes(latest.state) || succeeded(latest)) return undefined;
  if (latest.startedAt !== undefined && (latest.exitCode ?? 128) < 128) return undefined;
  // The previous agent has announced the next attempt, so this run does not decide how the entry ends.
  if ((announcedAttempt(pod, recorded) ?? 0) > latest.attempt) return latest.id;
  const { state, lastState } = recorded ?? {};
  const shown = [state?.running && shownId(recorded), shownId(lastState?.terminated)];
  return state?.terminated !== undefined || shown.includes(latest.id) ? undefined : latest.id;
}
