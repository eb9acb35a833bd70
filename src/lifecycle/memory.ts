/**
 * The memory of a worker that starts anew: all that matters is in the Pod's status and in the runtime.
 */
import type { ContainerStatus } from '../api/generated/types.ts';
import { factsOf } from './facts.ts';
import { probeOf } from './probes.ts';
import { emptyMemory, newTurn } from './turn.ts';
import { type HookResult, type Input, type Memory, type ProbeKind, type ProbeMemory, runKey } from './types.ts';
import type { ContainerView } from './view.ts';

export interface Recovered {
  memory: Memory;
  /** Hooks that ran before, to be observed from now on. */
  hooks: Record<string, HookResult>;
}

/** After a restart of the agent. Facts that hold already were announced by the agent before. */
export function rebuildMemory(input: Omit<Input, 'memory'>): Recovered {
  const turn = newTurn({ ...input, memory: emptyMemory() });
  const { view } = turn;
  const facts = factsOf({
    ...turn,
    termination: undefined,
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
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  for (const container of view.all) {
    const shown = statuses.find((each) => each.name === container.spec.name);
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
      ...(initialized && sameSandbox && sandbox !== undefined ? { initializedInSandbox: sandbox } : {}),
    },
  };
}

const isOf = (status: ContainerStatus, { current }: ContainerView): boolean =>
  current?.state === 'running' && status.containerID?.endsWith(`//${current.id}`) === true;
