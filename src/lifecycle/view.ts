/**
 * A Pod as the rules look at it: the spec's containers in order, each with its runs, beside the current sandbox.
 */
import type {
  Container,
  ContainerStatus,
  DeferContainer,
  EphemeralContainer,
  Pod,
  PodSpec,
} from '../api/generated/types.ts';
import { parseTime } from '../machinery/time.ts';
import type { ContainerKind, ContainerState, Input, Observed, SandboxState } from './types.ts';

export interface ContainerView {
  spec: Container | DeferContainer | EphemeralContainer;
  kind: ContainerKind;
  /** An init container with restartPolicy Always: started in its turn, it runs beside the apps. */
  sidecar: boolean;
  /** spec.initContainers{name} */
  fieldPath: string;
  /** All runs known, newest first. */
  runs: readonly ContainerState[];
  latest: ContainerState | undefined;
  /** The newest run, if it belongs to the current sandbox. */
  current: ContainerState | undefined;
  /** What the next run would be numbered: the restart count continues over sandboxes and lost records. */
  nextAttempt: number;
}

export interface PodView {
  pod: Pod;
  spec: PodSpec;
  restartPolicy: 'Always' | 'OnFailure' | 'Never';
  init: readonly ContainerView[];
  apps: readonly ContainerView[];
  /** The destructors, in order. */
  defers: readonly ContainerView[];
  ephemeral: readonly ContainerView[];
  /** init, then apps, defers, ephemeral */
  all: readonly ContainerView[];
  /** The newest sandbox, ready or not. */
  sandbox: SandboxState | undefined;
  observed: Observed;
  /** An app container was created in the current sandbox, or all init containers were seen to succeed in it. */
  initialized: boolean;
}

export const isLive = (run: ContainerState | undefined): run is ContainerState =>
  run !== undefined && (run.state === 'running' || run.state === 'unknown' || run.state === 'created');

/** It has processes, or may have. */
export const isRunning = (run: ContainerState | undefined): run is ContainerState =>
  isLive(run) && run.state !== 'created';

/** Something of the Pod is about to run. The call that started a defer container which has ended may still be on its way back. */
export const isStarting = ({ observed }: Pick<PodView, 'observed'>): boolean =>
  [...observed.inFlight].some((key) => {
    const [kind, name, attempt] = key.split('/');
    if (kind === 'createSandbox') return true;
    const hasEnded = observed.containers.some(
      (run) => run.kind === 'defer' && run.state === 'exited' && run.name === name && run.attempt === Number(attempt),
    );
    return kind === 'startContainer' && !hasEnded;
  });

export const succeeded = (run: ContainerState | undefined): boolean => run?.state === 'exited' && run.exitCode === 0;

const FIELDS = {
  init: 'initContainers',
  app: 'containers',
  defer: 'deferContainers',
  ephemeral: 'ephemeralContainers',
} as const satisfies Record<ContainerKind, keyof PodSpec>;

/** The reasons of a defer container that waits and is not about to start. */
const NOT_STARTING: ReadonlySet<string> = new Set(['PodRunning', 'PendingDefer', 'CrashLoopBackOff']);

/** The attempt of a defer container of which its status tells that it is about to start. */
export function announcedAttempt({ spec }: Pod, { name, state, restartCount }: ContainerStatus): number | undefined {
  const reason = state?.waiting?.reason;
  const isDefer = spec?.deferContainers?.some((entry) => entry.name === name) === true;
  return isDefer && reason !== undefined && !NOT_STARTING.has(reason) ? restartCount : undefined;
}

/** The statuses of the Pod's containers of every kind, as the object tells them. */
export const recordedStatuses = ({ status }: Pod): ContainerStatus[] => [
  ...(status?.initContainerStatuses ?? []),
  ...(status?.containerStatuses ?? []),
  ...(status?.deferContainerStatuses ?? []),
  ...(status?.ephemeralContainerStatuses ?? []),
];

/**
 * Of each container whose end the Pod's status tells of: that run and those before, the oldest first. Whoever removes them keeps to
 * the order: what is left of the others would be taken for the last.
 */
export const toldRuns = <Run extends Pick<ContainerState, 'id' | 'name' | 'attempt'>>(
  pod: Pod,
  runs: readonly Run[],
): Run[][] =>
  recordedStatuses(pod).flatMap(({ name, state }) => {
    const id = state?.terminated?.containerID?.split('//')[1];
    const last = runs.find((run) => run.id === id);
    if (last === undefined) return [];
    const told = runs.filter((run) => run.name === name && run.attempt <= last.attempt);
    return [told.sort((a, b) => a.attempt - b.attempt)];
  });

/**
 * A runtime that has lost how a run ended says `Unknown`: containerd, where it dies before it has written down an exit that its
 * event has told. What the Pod's status tells of that end stays.
 */
function asTold(run: ContainerState, pod: Pod): ContainerState {
  if (run.state !== 'exited' || run.reason !== 'Unknown') return run;
  const ends = recordedStatuses(pod).flatMap(({ state, lastState }) => [state?.terminated, lastState?.terminated]);
  const told = ends.find((end) => end?.containerID?.endsWith(`//${run.id}`));
  if (told === undefined) return run;
  const { exitCode, reason = '', message = '' } = told;
  return { ...run, exitCode, reason, message, finishedAt: parseTime(told.finishedAt) ?? run.createdAt };
}

export function viewOf({ pod, observed, memory }: Pick<Input, 'pod' | 'observed' | 'memory'>): PodView {
  const spec = pod.spec;
  if (spec === undefined) throw new TypeError(`the Pod ${pod.metadata.name} has no spec`);
  const sandbox = observed.sandboxes.reduce<SandboxState | undefined>(
    (newest, each) => (newest === undefined || each.attempt > newest.attempt ? each : newest),
    undefined,
  );
  const recorded = new Map<string, number>();
  for (const status of recordedStatuses(pod)) {
    if (status.containerID !== undefined || status.lastState?.terminated !== undefined)
      recorded.set(
        status.name,
        announcedAttempt(pod, status) === undefined ? status.restartCount : status.restartCount - 1,
      );
  }
  const view = (container: ContainerView['spec'], kind: ContainerKind): ContainerView => {
    const runs = observed.containers
      .filter((run) => run.name === container.name)
      .map((run) => asTold(run, pod))
      .sort((a, b) => b.attempt - a.attempt);
    const latest = runs[0];
    return {
      spec: container,
      kind,
      sidecar: kind === 'init' && container.restartPolicy === 'Always',
      fieldPath: `spec.${FIELDS[kind]}{${container.name}}`,
      runs,
      latest,
      current: latest !== undefined && latest.sandboxId === sandbox?.id ? latest : undefined,
      nextAttempt: Math.max(latest?.attempt ?? -1, recorded.get(container.name) ?? -1) + 1,
    };
  };
  const init = (spec.initContainers ?? []).map((container) => view(container, 'init'));
  const apps = spec.containers.map((container) => view(container, 'app'));
  const defers = (spec.deferContainers ?? []).map((container) => view(container, 'defer'));
  const ephemeral = (spec.ephemeralContainers ?? []).map((container) => view(container, 'ephemeral'));
  const initialized =
    sandbox !== undefined &&
    (memory.initializedInSandbox === sandbox.attempt || apps.some((container) => container.current !== undefined));
  return {
    pod,
    spec,
    restartPolicy: (spec.restartPolicy ?? 'Always') as PodView['restartPolicy'],
    init,
    apps,
    defers,
    ephemeral,
    all: [...init, ...apps, ...defers, ...ephemeral],
    sandbox,
    observed,
    initialized,
  };
}
