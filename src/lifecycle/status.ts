/** Sources: Pod Lifecycle, "Pod phase" and "Container states" (v1.33), and the specification of defer containers, "Status and events". */
import { isFinalPhase } from '../api/core/v1/pod/status/final-phase.ts';
import { type Termination, terminationRecord } from '../api/core/v1/pod/status/termination.ts';
import type { TerminationReason } from '../api/core/v1/pod/status/termination-reasons.ts';
import type { ContainerStatus, PodStatus, PodTermination } from '../api/generated/types.ts';
import { defined } from '../machinery/drop-undefined.ts';
import { formatTime } from '../machinery/time.ts';
import { conditionsOf } from './conditions.ts';
import { isInitialized, type Phase, phaseOf, type Situation } from './container-phases.ts';
import { attemptOf, hasFailed } from './defer.ts';
import { isReady, isStarted } from './probes.ts';
import { hasEndedForGood } from './restart.ts';
import { isCompletion } from './termination-causes.ts';
import type { ContainerState } from './types.ts';
import { type ContainerView, END_UNKNOWN, isRunning, isStarting, type PodView } from './view.ts';

/** `stopped`: the Pod is terminating, and no container and no sandbox of the Pod runs. */
export function statusOf(situation: Situation, stopped: boolean): PodStatus {
  const { view, end } = situation;
  const { input, pod } = view;
  const old = pod.status ?? {};
  const statuses = (containers: readonly ContainerView[]): ContainerStatus[] =>
    containers.map((container) => containerStatus(container, situation));
  const seen = { init: statuses(view.init), apps: statuses(view.apps) };
  const { init, apps } = end !== undefined && stopped ? withUnknownEnds(seen.init, seen.apps) : seen;
  const nodeIps = input.node.ips;
  const sandboxIps = view.spec.hostNetwork === true ? nodeIps : (view.sandbox?.ips ?? []);
  const ips = view.sandbox?.ready ? sandboxIps : (old.podIPs ?? []).map(({ ip }) => ip);
  const failure = failedBy(situation);
  const phase = podPhase(situation, stopped, apps, failure !== undefined);
  const byNode = input.nodeEnd?.reason === end?.termination.reason ? input.nodeEnd?.message : undefined;
  return {
    ...old,
    ...defined({
      observedGeneration: pod.metadata.generation,
      phase,
      conditions: conditionsOf(situation, phase, init, apps),
      startTime: old.startTime ?? formatTime(view.now),
      hostIP: nodeIps[0],
      hostIPs: listed(nodeIps.map((ip) => ({ ip }))),
      podIP: ips[0],
      podIPs: listed(ips.map((ip) => ({ ip }))),
      initContainerStatuses: listed(init),
      containerStatuses: apps,
      ephemeralContainerStatuses: listed(statuses(view.ephemeral)),
      deferContainerStatuses: listed(statuses(view.defers)),
      termination: end?.list && terminationStatus(end.termination, view),
    }),
    ...(phase === 'Failed' && failure && { ...failure, message: byNode ?? old.message ?? failure.message }),
  };
}

const listed = <T>(list: T[]): T[] | undefined => (list.length === 0 ? undefined : list);

/** A deadline that has moved later takes effect only once this field is written. */
function terminationStatus(termination: Termination, view: PodView): PodTermination {
  const containers = [...view.init, ...view.apps].flatMap(({ name, kind, latest: run, recorded }) => {
    const ended = run?.state === 'exited' ? terminatedState(run, view.input.node.runtimeName) : undefined;
    const end = run === undefined ? recorded?.state?.terminated : ended;
    if (end?.finishedAt === undefined) return [];
    const { exitCode, reason = 'Error', finishedAt } = end;
    const signal = exitCode > 128 && exitCode <= 192 ? exitCode - 128 : undefined;
    const restartCount = run?.attempt ?? recorded?.restartCount ?? 0;
    return defined({ name, kind, exitCode, restartCount, reason, signal, finishedAt });
  });
  return { ...terminationRecord(termination), ...defined({ skip: view.pod.status?.termination?.skip }), containers };
}

type State = NonNullable<ContainerStatus['state']>;
type Failure = Required<Pick<PodStatus, 'reason' | 'message'>>;

export const DEADLINE_EXCEEDED = 'Pod was active on the node longer than the specified deadline';

/** These terminations make the Pod Failed regardless of exit codes. Source: the kubelet of v1.33 (reasons, most messages). */
const FAILED_BY: Partial<Record<TerminationReason, Failure>> = {
  DeadlineExceeded: { reason: 'DeadlineExceeded', message: DEADLINE_EXCEEDED },
  NodePressure: { reason: 'Evicted', message: 'The node was low on resources.' },
  NodeShutdown: { reason: 'Terminated', message: 'Pod was terminated in response to imminent node shutdown.' },
  Preempted: { reason: 'Preempting', message: 'Preempted in order to admit critical pod' },
};

/** Returns why the Pod fails regardless of its app containers; undefined if the app containers decide. */
function failedBy({ end, view }: Situation): Failure | undefined {
  if (end === undefined || end.termination.requested) return undefined;
  const { list, termination } = end;
  if (!isCompletion(termination)) return FAILED_BY[termination.reason];
  const decisive = list?.entries.filter(({ spec }) => spec.failurePolicy === 'FailPod') ?? [];
  const failed = decisive.filter((entry) => hasFailed(view, entry, termination)).map(({ spec }) => spec.name);
  if (failed.length === 0) return undefined;
  return { reason: 'DeferContainerFailed', message: `defer containers that failed: [${failed.join(' ')}]` };
}

/** A final phase never changes, and is not set while a container may still run. Source: status manager of v1.33. */
function podPhase(situation: Situation, stopped: boolean, apps: ContainerStatus[], failed: boolean): string {
  const { view, end, finished } = situation;
  const recorded = view.pod.status?.phase ?? 'Pending';
  const begun = apps.every(hasRun);
  // Containers may run after the list has ended. The Pod then has its earlier phase again.
  const old = recorded === 'Terminating' ? (begun ? 'Running' : 'Pending') : recorded;
  if (end?.list?.open) return view.input.node.terminatingPhase === false ? old : 'Terminating';
  if (isFinalPhase(old)) return old;
  if (failed || (end !== undefined && stopped) || finished !== undefined) {
    if (isStarting(view) || view.observed.containers.some(isRunning)) return old;
    const allSucceeded = apps.every(({ state }) => state?.terminated?.exitCode === 0);
    return allSucceeded && !failed && finished?.failedInit === undefined ? 'Succeeded' : 'Failed';
  }
  // The apps of a terminating Pod may have run in an earlier sandbox than its entries, but the phase stays Running.
  if (end !== undefined && old === 'Running') return old;
  return isInitialized(situation) && begun ? 'Running' : 'Pending';
}

function containerStatus(container: ContainerView, situation: Situation): ContainerStatus {
  const { view, end } = situation;
  const { name, kind, sidecar, runs, latest: run, recorded } = container;
  const isDefer = kind === 'defer';
  const phase = phaseOf(container, situation);
  // The recorded end of a defer container is final. For another container, the recorded end holds while the runtime has no run.
  if (recorded?.state?.terminated !== undefined && (isDefer || run === undefined)) return recorded;
  if (run === undefined && recorded !== undefined && !isDefer && hasEndedForGood(view, container))
    return withEnd(recorded);
  // If the runtime has lost a defer container's last run, the view contains the result of lostRun().
  const known = isDefer ? undefined : recorded;
  const { runtimeName } = view.input.node;
  const state = stateOf(phase, runtimeName);
  const last = state.waiting !== undefined && run?.state === 'exited' ? run : runs[1];
  const lost = !isDefer && container.isLost;
  const before = lost ? unknownEnd('deleted.  The container used to be Running') : (known?.lastState ?? {});
  const running = state.running !== undefined;
  const completed = kind === 'init' && !sidecar && state.terminated?.exitCode === 0;
  const announced = isDefer && phase.is === 'Waiting' && end?.list?.turn?.container === container;
  return defined({
    name,
    state,
    lastState: !lost && last?.state === 'exited' ? { terminated: terminatedState(last, runtimeName) } : before,
    ready: completed || ((kind === 'app' || sidecar) && running && isReady(view, container)),
    restartCount: announced ? attemptOf(container) : ((lost ? undefined : run?.attempt) ?? known?.restartCount ?? 0),
    image: run?.image ?? container.image,
    imageID: run?.imageId ?? '',
    started: running && (isDefer || isStarted(view, container)),
    containerID: run && `${runtimeName}://${run.id}`,
  });
}

function stateOf(phase: Phase, runtimeName: string): State {
  if (phase.is === 'Running') return { running: { startedAt: formatTime(phase.run.startedAt ?? phase.run.createdAt) } };
  if (phase.is === 'Exited') return { terminated: terminatedState(phase.run, runtimeName) };
  if (phase.is !== 'Ended') return { waiting: defined({ reason: phase.reason, message: phase.message }) };
  const { run, reason, exitCode, message, at } = phase.end;
  const own = run === undefined ? { finishedAt: formatTime(at) } : terminatedState(run, runtimeName);
  return { terminated: { ...own, ...defined({ reason, exitCode, message }) } };
}

function terminatedState(run: ContainerState, runtimeName: string) {
  const { exitCode = 137, startedAt } = run;
  return defined({
    exitCode,
    reason: run.reason || (exitCode === 0 ? 'Completed' : 'Error'),
    message: run.message || undefined,
    startedAt: startedAt === undefined ? undefined : formatTime(startedAt),
    finishedAt: formatTime(Math.max(run.finishedAt ?? run.createdAt, startedAt ?? 0)), // The start of a short run may be recorded late.
    containerID: `${runtimeName}://${run.id}`,
  });
}

/** Source: pkg/kubelet/kubelet_pods.go of v1.33 (wording). */
function unknownEnd(when: string): State {
  const message = `The container could not be located when the pod was ${when}`;
  return { terminated: { exitCode: 137, reason: END_UNKNOWN, message } };
}

const hasRun = ({ state, lastState }: ContainerStatus): boolean =>
  state?.waiting === undefined || lastState?.terminated !== undefined;

/** In a stopped Pod, containers without a known end count as failed, unless their turn never came. Source: TerminatePod of v1.33. */
function withUnknownEnds(init: ContainerStatus[], apps: ContainerStatus[]) {
  const begun = Math.max(1, init.findLastIndex(hasRun) + 1);
  const last = init.at(-1);
  const succeeded = [last?.state, last?.lastState].some((state) => state?.terminated?.exitCode === 0);
  const isInitialized = last === undefined || succeeded || apps.some(hasRun);
  return {
    init: init.map((status, index) => (index < begun ? withEnd(status) : status)),
    apps: isInitialized ? apps.map(withEnd) : apps,
  };
}

const withEnd = (status: ContainerStatus): ContainerStatus =>
  status.state?.terminated ? status : { ...status, ready: false, started: false, state: unknownEnd('terminated') };
