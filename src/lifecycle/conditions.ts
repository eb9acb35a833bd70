/** Determines the conditions of a Pod. Source: Pod Lifecycle, "Pod conditions" (v1.33), with the kubelet's reasons and messages. */
import { undoneEntries, undoneNames } from '../api/core/v1/pod/status/deferred.ts';
import type { ContainerStatus, PodCondition } from '../api/generated/types.ts';
import { defined } from '../machinery/drop-undefined.ts';
import { formatTime } from '../machinery/time.ts';
import { isInitialized, type Situation } from './container-phases.ts';

type Statuses = ContainerStatus[];
type Verdict = Pick<PodCondition, 'status' | 'reason' | 'message'>;

const holds = (reason?: string, message?: string): Verdict => ({ status: 'True', reason, message });
const fails = (reason: string, message?: string): Verdict => ({ status: 'False', reason, message });

const failsFor = (containers: { name: string }[], reason: string, what: string): Verdict | undefined =>
  containers.length === 0 ? undefined : fails(reason, `${what}: [${containers.map(({ name }) => name).join(' ')}]`);

/** Condition types that the node owns once a Pod is bound to it. */
const OWN_TYPES = ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled', 'Deferred'];

const NODE_DISRUPTION = 'TerminationByKubelet';

/** DisruptionTarget also has other writers. They set other reasons. */
export const isNodeCondition = ({ type, reason }: PodCondition): boolean =>
  OWN_TYPES.includes(type) || (type === 'DisruptionTarget' && reason === NODE_DISRUPTION);

export function conditionsOf(situation: Situation, phase: string, init: Statuses, apps: Statuses): PodCondition[] {
  const { pod, sandbox, now } = situation.view;
  const old = pod.status?.conditions ?? [];
  const containersReady = containersVerdict(situation, phase, init, apps);
  // Like upstream, a deleted Pod stays ready while its probes succeed. Other terminations with defer containers end a Pod's readiness.
  const endsUnrequested = situation.end?.list !== undefined && pod.metadata.deletionTimestamp === undefined;
  const ready = containersReady.status === 'False' ? containersReady : gatesVerdict(situation);
  const verdicts = defined<Record<string, Verdict | undefined>>({
    PodReadyToStartContainers: { status: sandbox?.ready ? 'True' : 'False' },
    Initialized: initializedVerdict(situation, phase, init),
    Ready: endsUnrequested ? fails('PodTerminating') : ready,
    ContainersReady: containersReady,
    PodScheduled: holds(),
    Deferred: deferredVerdict(situation),
    DisruptionTarget: disruptionVerdict(situation),
  });
  const own = Object.entries(verdicts).map(([type, { status, reason, message }]): PodCondition => {
    const before = old.find((each) => each.type === type && each.status === status && isNodeCondition(each));
    const lastTransitionTime = before?.lastTransitionTime || formatTime(now);
    // Source: the kubelet of v1.33 with PodObservedGenerationTracking.
    const observedGeneration = pod.metadata.generation;
    return defined({ type, observedGeneration, status, lastTransitionTime, reason, message });
  });
  return [...own, ...old.filter(({ type }) => !OWN_TYPES.includes(type) && verdicts[type] === undefined)];
}

function initializedVerdict(situation: Situation, phase: string, init: Statuses): Verdict {
  if (phase === 'Succeeded') return holds('PodCompleted');
  if (isInitialized(situation)) return holds();
  const incomplete = init.filter(({ started, ready }, i) => !(situation.view.init[i]?.sidecar ? started : ready));
  return failsFor(incomplete, 'ContainersNotInitialized', 'containers with incomplete status') ?? holds();
}

function containersVerdict({ view }: Situation, phase: string, init: Statuses, apps: Statuses): Verdict {
  if (phase === 'Succeeded') return fails('PodCompleted');
  if (phase === 'Failed') return fails('PodFailed');
  const unready = [...init.filter((_, i) => view.init[i]?.sidecar), ...apps].filter(({ ready }) => !ready);
  return failsFor(unready, 'ContainersNotReady', 'containers with unready status') ?? holds();
}

function gatesVerdict({ view }: Situation): Verdict {
  const closed = (view.spec.readinessGates ?? []).flatMap(({ conditionType }) => {
    const status = view.pod.status?.conditions?.find(({ type }) => type === conditionType)?.status;
    if (status === undefined) return `corresponding condition of pod readiness gate "${conditionType}" does not exist.`;
    return status === 'True' ? [] : `the status of pod readiness gate "${conditionType}" is not "True", but ${status}`;
  });
  return closed.length === 0 ? holds() : fails('ReadinessGatesNotReady', closed.join(', '));
}

const DEFERRING = 'DeferContainersRunning';

/** Returns undefined for a Pod without defer containers or without a termination. The condition is final once no entry is open. */
export function deferredVerdict({ end, view }: Situation): Verdict | undefined {
  const { list } = end ?? {};
  if (list === undefined) return undefined;
  if (list.open) return fails(DEFERRING);
  const before = view.pod.status?.conditions?.find(({ type }) => type === 'Deferred');
  if (before?.reason !== undefined && before.reason !== DEFERRING) return before;
  const isSkipped = list.entries.every(({ end }) => end?.reason === 'Skipped');
  if (isSkipped && list.skipped !== undefined) return fails('DeferContainersSkipped', list.skipped);
  const { lost, incomplete, failed } = undoneNames(
    list.entries.flatMap(({ end, spec: { name } }) =>
      end ? { name, reason: end.reason, message: end.message ?? '' } : [],
    ),
  );
  const isLost = lost.length > 0 || view.sandbox === undefined || (!view.sandbox.ready && !view.sandbox.stopped);
  const whyIncomplete = isLost ? 'NodeLost' : 'GracePeriodExceeded';
  const undone = undoneEntries(incomplete, failed);
  if (undone !== '') return fails(incomplete.length > 0 ? whyIncomplete : 'DeferContainersFailed', undone);
  return isSkipped ? fails('DeferContainersSkipped', list.entries[0]?.end?.message) : holds('DeferContainersSucceeded');
}

/** Source: Disruptions, "Pod disruption conditions" (v1.33). */
function disruptionVerdict({ view, end }: Situation): Verdict | undefined {
  const { nodeEnd } = view.input;
  const reason = end?.termination.reason;
  const isPreempted = reason === 'Preempted' && nodeEnd?.reason === 'Preempted';
  if (!nodeEnd || !(reason === 'NodePressure' || reason === 'NodeShutdown' || isPreempted)) return undefined;
  const preempted = 'Pod was preempted by Kubelet to accommodate a critical pod.';
  return holds(NODE_DISRUPTION, isPreempted ? preempted : nodeEnd.message);
}
