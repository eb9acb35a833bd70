/**
 * Summarizes a Pod for one line of a table: the number of ready containers, a status of one word, and the restarts.
 * Source: the Pod printer of v1.33 (behavior); for `Defer:i/n`, the specification of defer containers.
 */
import { type Millis, parseTime } from '../../../../../machinery/time.ts';
import type { ContainerStatus, Pod, PodCondition } from '../../../../generated/types.ts';
import { isSidecar } from '../containers.ts';
import { hasEnded } from './final-phase.ts';

export interface PodSummary {
  ready: number;
  total: number;
  status: string;
  restarts: number;
  /** Undefined if no container has a previous run. */
  lastRestart: Millis | undefined;
}

export function podSummary(pod: Pod): PodSummary {
  const sidecars = new Set((pod.spec?.initContainers ?? []).filter(isSidecar).map(({ name }) => name));
  const initStatuses = pod.status?.initContainerStatuses ?? [];
  const statuses = pod.status?.containerStatuses ?? [];
  const initialization = initializationOf(pod, sidecars);
  const total = (pod.spec?.containers ?? []).length + sidecars.size;
  const before = { ready: initialization.ready, total };
  let status = reasonBefore(pod);
  if (initialization.status !== undefined && !isTrue(pod, 'Initialized')) {
    return { ...before, status: terminating(pod, initialization.status), ...restartsOf(initialization.seen) };
  }
  const running = runningState(pod, statuses, initialization.status ?? status);
  status = running.status;
  const restarts = restartsOf([...initStatuses.filter(({ name }) => sidecars.has(name)), ...statuses]);
  return { total, ready: initialization.ready + running.ready, status: terminating(pod, status), ...restarts };
}

const condition = (pod: Pod, type: string): PodCondition | undefined =>
  pod.status?.conditions?.find((candidate) => candidate.type === type);

export const isTrue = (pod: Pod, type: string): boolean => condition(pod, type)?.status === 'True';

function reasonBefore(pod: Pod): string {
  if (condition(pod, 'PodScheduled')?.reason === 'SchedulingGated') return 'SchedulingGated';
  return pod.status?.reason || pod.status?.phase || '';
}

/** `status`: the status if the Pod is not terminating. */
function terminating(pod: Pod, status: string): string {
  const deleted = pod.metadata.deletionTimestamp !== undefined;
  if (deleted && pod.status?.reason === 'NodeLost') return 'Unknown';
  const deferred = deferring(pod);
  if (deferred !== undefined) return deferred;
  if (!deleted) return status;
  return hasEnded(pod) ? status : 'Terminating';
}

/**
 * Returns `Defer:i/n` while the Pod terminates and only i of its n defer containers have ended, with any result. The phase may still be
 * Running.
 */
function deferring(pod: Pod): string | undefined {
  const { spec, status } = pod;
  if (status?.termination === undefined || hasEnded(pod)) return undefined;
  const entries = new Set((spec?.deferContainers ?? []).map(({ name }) => name));
  const statuses = status.deferContainerStatuses ?? [];
  const over = statuses.filter(({ name, state }) => entries.has(name) && state?.terminated !== undefined).length;
  return over < entries.size ? `Defer:${over}/${entries.size}` : undefined;
}

/**
 * `status` comes from the first init container that has not succeeded (for a sidecar: has not started); undefined if there is none. `ready`
 * counts the ready sidecars up to this container, and `seen` contains the statuses up to this container.
 */
function initializationOf(
  pod: Pod,
  sidecars: ReadonlySet<string>,
): { status: string | undefined; ready: number; seen: ContainerStatus[] } {
  const seen: ContainerStatus[] = [];
  let ready = 0;
  for (const [index, container] of (pod.status?.initContainerStatuses ?? []).entries()) {
    seen.push(container);
    const { terminated, waiting } = container.state ?? {};
    if (terminated?.exitCode === 0) continue;
    if (sidecars.has(container.name) && container.started === true) {
      if (container.ready) ready++;
      continue;
    }
    if (terminated !== undefined) return { status: `Init:${endOf(terminated)}`, ready, seen };
    if (waiting?.reason && waiting.reason !== 'PodInitializing') {
      return { status: `Init:${waiting.reason}`, ready, seen };
    }
    return { status: `Init:${index}/${(pod.spec?.initContainers ?? []).length}`, ready, seen };
  }
  return { status: undefined, ready, seen };
}

const endOf = ({ reason, signal, exitCode }: { reason?: string; signal?: number; exitCode: number }): string =>
  reason || (signal ? `Signal:${signal}` : `ExitCode:${exitCode}`);

/**
 * Returns the status, and the number of app containers that run and are ready. The first app container that has ended, or waits with a
 * reason, determines the status; `before`: the status if there is no such container.
 */
function runningState(
  pod: Pod,
  statuses: readonly ContainerStatus[],
  before: string,
): { status: string; ready: number } {
  let status = before;
  let ready = 0;
  for (const { state, ready: isReady } of [...statuses].reverse()) {
    if (state?.waiting?.reason) status = state.waiting.reason;
    else if (state?.terminated !== undefined) status = endOf(state.terminated);
    else if (isReady && state?.running !== undefined) ready++;
  }
  if (status === 'Completed' && ready > 0) status = isTrue(pod, 'Ready') ? 'Running' : 'NotReady';
  return { status, ready };
}

function restartsOf(statuses: readonly ContainerStatus[]): { restarts: number; lastRestart: Millis | undefined } {
  let restarts = 0;
  let lastRestart: Millis | undefined;
  for (const { restartCount, lastState } of statuses) {
    restarts += restartCount;
    const ended = parseTime(lastState?.terminated?.finishedAt);
    if (ended !== undefined && (lastRestart === undefined || ended > lastRestart)) lastRestart = ended;
  }
  return { restarts, lastRestart };
}
