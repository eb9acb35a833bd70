/**
 * The memory of a worker that starts anew: all that matters is in the Pod's status, in the runtime and in the stops that were kept.
 */
import type { ContainerStatus, Pod } from '../api/generated/types.ts';
import { deferListOf } from './defer.ts';
import { factsOf } from './facts.ts';
import { probeOf } from './probes.ts';
import type { Stops } from './stops.ts';
import { recordedTermination } from './termination.ts';
import { emptyMemory, newTurn } from './turn.ts';
import { type HookResult, type Input, type Memory, type ProbeKind, type ProbeMemory, runKey } from './types.ts';
import { announcedAttempt, type ContainerView, recordedStatuses } from './view.ts';

export interface Recovered {
  memory: Memory;
  /** Hooks that ran before, to be observed from now on. */
  hooks: Record<string, HookResult>;
}

/** After a restart of the agent, with the stops that were kept. Facts that hold already were announced by the agent before. */
export function rebuildMemory(input: Omit<Input, 'memory'>, stops: Stops): Recovered {
  const turn = newTurn({ ...input, memory: { ...emptyMemory(), stops } });
  const { view } = turn;
  const termination = view.defers.length > 0 ? recordedTermination(input.pod) : undefined;
  const facts = factsOf({
    ...turn,
    termination,
    list: deferListOf(turn, termination),
    progress: { stage: 'preparing' },
    startedAt: input.now,
    stopped: false,
  });
  const { status } = input.pod;
  const initialized = status?.conditions?.some((each) => each.type === 'Initialized' && each.status === 'True');
  const sandbox = view.sandbox?.ready === true ? view.sandbox.attempt : undefined;
  const address = view.spec.hostNetwork === true ? input.node.ips[0] : view.sandbox?.ips[0];
  const sameSandbox = status?.podIP !== undefined && address === status.podIP;

  const hooks: Record<string, HookResult> = {};
  const probes: Record<string, ProbeMemory> = {};
  for (const container of view.all) {
    const shown = recordedStatuses(input.pod).find((each) => each.name === container.spec.name);
    if (shown?.state?.running === undefined || !isOf(shown, container)) continue;
    const { id, startedAt, createdAt } = container.current as NonNullable<ContainerView['current']>;
    // Shown as running: its postStart hook had succeeded.
    hooks[runKey(id, 'postStart')] = {};
    const passed: [ProbeKind, boolean | undefined][] = [
      ['startup', shown.started],
      ['readiness', shown.ready],
    ];
    for (const [kind, passing] of passed)
      if (passing === true && probeOf(container, kind) !== undefined)
        probes[runKey(id, kind)] = { serial: 0, dueAt: startedAt ?? createdAt, successes: 1, failures: 0, passing };
  }
  return {
    hooks,
    memory: {
      ...emptyMemory(),
      announced: new Set(facts.keys()),
      probes,
      stops,
      interrupted: new Set(view.defers.flatMap((container) => cutOff(container, input.pod) ?? [])),
      unstarted: new Set(view.defers.flatMap(({ latest }) => (latest?.state === 'created' ? latest.id : []))),
      ...(initialized && sameSandbox && sandbox !== undefined ? { initializedInSandbox: sandbox } : {}),
    },
  };
}

/** The ID of an entry's run that did not succeed, and of which nothing was written down but that it was about to start. */
function cutOff({ latest, spec }: ContainerView, pod: Pod): string | undefined {
  if (latest === undefined || latest.state === 'created' || latest.state === 'running') return undefined;
  if (latest.state === 'exited' && latest.exitCode === 0) return undefined;
  const recorded = pod.status?.deferContainerStatuses?.find(({ name }) => name === spec.name);
  const isOfRun = (id: string | undefined): boolean => id?.endsWith(`//${latest.id}`) === true;
  // The agent before had decided the same.
  if (recorded !== undefined && (announcedAttempt(pod, recorded) ?? 0) > latest.attempt) return latest.id;
  const known =
    recorded?.state?.terminated !== undefined ||
    (recorded?.state?.running !== undefined && isOfRun(recorded.containerID)) ||
    isOfRun(recorded?.lastState?.terminated?.containerID);
  return known ? undefined : latest.id;
}

const isOf = (status: ContainerStatus, { current }: ContainerView): boolean =>
  current?.state === 'running' && status.containerID?.endsWith(`//${current.id}`) === true;
