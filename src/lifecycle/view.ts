/**
 * A Pod as the rules look at it: the spec's containers in order, each with its runs, beside the current sandbox.
 */
import type { Container, EphemeralContainer, Pod, PodSpec } from '../api/generated/types.ts';
import type { ContainerKind, ContainerState, Input, Observed, SandboxState } from './types.ts';

export interface ContainerView {
  spec: Container | EphemeralContainer;
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
  ephemeral: readonly ContainerView[];
  /** init, then apps, then ephemeral */
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

/** Something of the Pod is about to run. */
export const isStarting = ({ observed }: Pick<PodView, 'observed'>): boolean =>
  [...observed.inFlight].some((key) => key.startsWith('startContainer/') || key.startsWith('createSandbox/'));

export const succeeded = (run: ContainerState | undefined): boolean => run?.state === 'exited' && run.exitCode === 0;

const FIELDS = { init: 'initContainers', app: 'containers', ephemeral: 'ephemeralContainers' } as const;

export function viewOf({ pod, observed, memory }: Pick<Input, 'pod' | 'observed' | 'memory'>): PodView {
  const spec = pod.spec;
  if (spec === undefined) throw new TypeError(`the Pod ${pod.metadata.name} has no spec`);
  const sandbox = observed.sandboxes.reduce<SandboxState | undefined>(
    (newest, each) => (newest === undefined || each.attempt > newest.attempt ? each : newest),
    undefined,
  );
  const recorded = new Map<string, number>();
  const { initContainerStatuses = [], containerStatuses = [], ephemeralContainerStatuses = [] } = pod.status ?? {};
  for (const status of [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses]) {
    if (status.containerID !== undefined || status.lastState?.terminated !== undefined)
      recorded.set(status.name, status.restartCount);
  }
  const view = (container: Container | EphemeralContainer, kind: keyof typeof FIELDS): ContainerView => {
    const runs = observed.containers.filter((run) => run.name === container.name).sort((a, b) => b.attempt - a.attempt);
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
    ephemeral,
    all: [...init, ...apps, ...ephemeral],
    sandbox,
    observed,
    initialized,
  };
}
