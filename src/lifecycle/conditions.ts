/**
 * The conditions of a Pod. Source: Pod Lifecycle, "Pod conditions" (v1.33), with the kubelet's reasons and messages.
 */
import type { ContainerStatus, PodCondition } from '../api/generated/types.ts';
import { formatTime } from '../machinery/time.ts';
import { deferredVerdict } from './defer-status.ts';
import type { StatusInput } from './status.ts';

interface Verdict {
  status: 'True' | 'False';
  reason?: string;
  message?: string;
}

const holds: Verdict = { status: 'True' };

/** The types that the node answers for. */
export const NODE_CONDITIONS: ReadonlySet<string> = new Set([
  'PodReadyToStartContainers',
  'Initialized',
  'Ready',
  'ContainersReady',
  'PodScheduled',
  'Deferred',
]);

/** What the node sets, in upstream's order, and whatever other conditions the Pod bears. */
export function conditionsOf(
  given: StatusInput,
  phase: string,
  init: ContainerStatus[],
  apps: ContainerStatus[],
): PodCondition[] {
  const { input, view } = given;
  const old = input.pod.status?.conditions ?? [];
  const containersReady = areContainersReady(given, phase, init, apps);
  const deferred = deferredVerdict(given);
  const verdicts: Record<string, Verdict> = {
    PodReadyToStartContainers: { status: view.sandbox?.ready ? 'True' : 'False' },
    Initialized: isInitialized(given, phase, init),
    Ready:
      given.list !== undefined
        ? { status: 'False', reason: 'PodTerminating' }
        : containersReady.status === 'False'
          ? containersReady
          : areGatesOpen(given),
    ContainersReady: containersReady,
    PodScheduled: holds,
    ...(deferred === undefined ? {} : { Deferred: deferred }),
  };
  const { generation } = input.pod.metadata;
  // Source: the kubelet of v1.33 with PodObservedGenerationTracking, as for that of the status.
  const observed = generation === undefined ? {} : { observedGeneration: generation };
  const own = Object.entries(verdicts).map(([type, verdict]): PodCondition => {
    const before = old.find((condition) => condition.type === type);
    return {
      type,
      ...observed,
      status: verdict.status,
      lastTransitionTime:
        before?.status === verdict.status && before.lastTransitionTime
          ? before.lastTransitionTime
          : formatTime(input.now),
      ...(verdict.reason === undefined ? {} : { reason: verdict.reason }),
      ...(verdict.message === undefined ? {} : { message: verdict.message }),
    };
  });
  const disruption = disruptionTarget(given);
  const others = old.filter(({ type }) => !NODE_CONDITIONS.has(type) && type !== disruption?.type);
  return [...own, ...(disruption === undefined ? [] : [{ ...disruption, ...observed }]), ...others];
}

/** Source: Disruptions, "Pod disruption conditions" (v1.33): TerminationByKubelet. */
function disruptionTarget({ input, termination }: StatusInput): PodCondition | undefined {
  const { nodeEnd, now, pod } = input;
  const reason = termination?.reason;
  const preempted = reason === 'Preempted' && nodeEnd?.reason === 'Preempted';
  const byNode = reason === 'NodePressure' || reason === 'NodeShutdown' || preempted;
  if (nodeEnd === undefined || !byNode) return undefined;
  const before = pod.status?.conditions?.find(isNodeDisruption);
  return {
    type: 'DisruptionTarget',
    status: 'True',
    lastTransitionTime: before?.lastTransitionTime ?? formatTime(now),
    reason: NODE_DISRUPTION,
    message: preempted ? 'Pod was preempted by Kubelet to accommodate a critical pod.' : nodeEnd.message,
  };
}

const NODE_DISRUPTION = 'TerminationByKubelet';

/** DisruptionTarget is others' as well. */
const isNodeDisruption = ({ type, reason }: PodCondition): boolean =>
  type === 'DisruptionTarget' && reason === NODE_DISRUPTION;

/** Whether the node answers for the condition as it is. */
export const isNodeCondition = (condition: PodCondition): boolean =>
  NODE_CONDITIONS.has(condition.type) || isNodeDisruption(condition);

function isInitialized({ view, progress }: StatusInput, phase: string, init: ContainerStatus[]): Verdict {
  if (phase === 'Succeeded') return { ...holds, reason: 'PodCompleted' };
  if (view.initialized || progress.stage === 'running') return holds;
  const incomplete = view.init.filter(({ sidecar }, i) =>
    sidecar ? init[i]?.started !== true : init[i]?.ready !== true,
  );
  if (incomplete.length === 0) return holds;
  return {
    status: 'False',
    reason: 'ContainersNotInitialized',
    message: `containers with incomplete status: [${incomplete.map(({ spec }) => spec.name).join(' ')}]`,
  };
}

/** Sidecars count as the apps do. */
function areContainersReady(
  { view }: StatusInput,
  phase: string,
  init: ContainerStatus[],
  apps: ContainerStatus[],
): Verdict {
  if (phase === 'Succeeded') return { status: 'False', reason: 'PodCompleted' };
  if (phase === 'Failed') return { status: 'False', reason: 'PodFailed' };
  const sidecars = init.filter((_, i) => view.init[i]?.sidecar);
  const unready = [...sidecars, ...apps].filter((status) => !status.ready);
  if (unready.length === 0) return holds;
  return {
    status: 'False',
    reason: 'ContainersNotReady',
    message: `containers with unready status: [${unready.map((status) => status.name).join(' ')}]`,
  };
}

/** Source: Pod Lifecycle, "Pod readiness": every readiness gate names a condition that must be True. */
function areGatesOpen({ input, view }: StatusInput): Verdict {
  const conditions = input.pod.status?.conditions ?? [];
  const closed = (view.spec.readinessGates ?? []).flatMap(({ conditionType }) => {
    const condition = conditions.find(({ type }) => type === conditionType);
    if (condition === undefined)
      return [`corresponding condition of pod readiness gate "${conditionType}" does not exist.`];
    if (condition.status !== 'True')
      return [`the status of pod readiness gate "${conditionType}" is not "True", but ${condition.status}`];
    return [];
  });
  return closed.length === 0
    ? holds
    : { status: 'False', reason: 'ReadinessGatesNotReady', message: closed.join(', ') };
}
