/**
 * Decides the status of a PodDisruptionBudget. The functions are pure.
 * Source: pkg/controller/disruption/disruption.go of v1.33 (behavior, reasons and wording); the specification of defer containers,
 * "Workloads" (a Pod counts as disrupted as soon as its termination begins).
 */
import { isHealthy, isTerminating } from '../../api/core/v1/pod/status/healthy.ts';
import type { LabelSelector, Pod, PodDisruptionBudget, PodDisruptionBudgetStatus } from '../../api/generated/types.ts';
import { resolveAmount } from '../../api/int-or-percent.ts';
import type { EventDraft } from '../../api/kind.ts';
import {
  statusOf,
  withDisruptionAllowed,
  withSyncFailed,
} from '../../api/policy/v1/pod-disruption-budget/budget-status.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { type Millis, parseTime } from '../../machinery/time.ts';
import { controllerOf } from '../ownership/owner.ts';

/** How long an evicted Pod counts as disrupted if it is not deleted. Source: DeletionTimeout of v1.33. */
export const DELETION_TIMEOUT_MILLIS = 120_000;

export type OwnerScale = { uid: string; replicas: number } | { problem: string };

export interface DisruptionInput {
  budget: PodDisruptionBudget;
  pods: readonly Pod[];
  /**
   * Returns the scale of the Pod's controller, or why it has none; undefined if the controller does not exist. Called only for Pods with a
   * controller.
   */
  scaleOf: (pod: Pod) => OwnerScale | undefined;
  now: Millis;
}

export interface Decision {
  status: PodDisruptionBudgetStatus;
  events: (EventDraft & { object: KubeObject })[];
  /** When a Pod ceases to count as disrupted, so that the budget must be reconciled again; undefined if no Pod counts as disrupted. */
  recheckAt: Millis | undefined;
}

interface Expectation {
  expected: number;
  hasUnmanaged: boolean;
}

export function reconcile(input: DisruptionInput): Decision {
  const { budget, pods, now } = input;
  const events: Decision['events'] = [];
  if (pods.length === 0)
    events.push({ object: budget, type: 'Normal', reason: 'NoPods', message: 'No matching pods found' });
  const expectation = expectationOf(input);
  if ('problem' in expectation) {
    const message = `Failed to calculate the number of expected pods: ${expectation.problem}`;
    events.push({ object: budget, type: 'Warning', reason: 'CalculateExpectedPodCountFailed', message });
    return { status: withSyncFailed(statusOf(budget), expectation.problem, now), events, recheckAt: undefined };
  }
  if (expectation.hasUnmanaged) events.push(unmanaged(budget));
  const disrupted = disruptedPods(input);
  for (const pod of disrupted.overdue) events.push(notDeleted(pod, budget));
  const healthy = pods.filter((pod) => isHealthy(pod) && disrupted.current[pod.metadata.name] === undefined).length;
  return {
    status: nextStatus(budget, expectation, healthy, disrupted.current, now),
    events,
    recheckAt: disrupted.next,
  };
}

function nextStatus(
  budget: PodDisruptionBudget,
  { expected, desired }: { expected: number; desired: number },
  healthy: number,
  disrupted: Record<string, string>,
  now: Millis,
): PodDisruptionBudgetStatus {
  const { conditions } = statusOf(budget);
  const status: PodDisruptionBudgetStatus = {
    observedGeneration: budget.metadata.generation ?? 0,
    disruptionsAllowed: expected > 0 ? Math.max(0, healthy - desired) : 0,
    currentHealthy: healthy,
    desiredHealthy: desired,
    expectedPods: expected,
    ...(Object.keys(disrupted).length === 0 ? {} : { disruptedPods: disrupted }),
    ...(conditions === undefined ? {} : { conditions }),
  };
  return withDisruptionAllowed(status, now);
}

function expectationOf(input: DisruptionInput): (Expectation & { desired: number }) | { problem: string } {
  const { minAvailable, maxUnavailable } = input.budget.spec ?? {};
  if (maxUnavailable === undefined && typeof minAvailable !== 'string') {
    const expected = minAvailable === undefined ? 0 : input.pods.length;
    return { expected, desired: minAvailable ?? 0, hasUnmanaged: false };
  }
  const scale = expectedScale(input);
  if ('problem' in scale) return scale;
  const { expected } = scale;
  const desired =
    maxUnavailable === undefined
      ? resolveAmount(minAvailable, expected, 'up')
      : Math.max(0, expected - resolveAmount(maxUnavailable, expected, 'up'));
  return { ...scale, desired };
}

function expectedScale({ pods, scaleOf }: DisruptionInput): Expectation | { problem: string } {
  const scales = new Map<string, number>();
  let hasUnmanaged = false;
  for (const pod of pods) {
    if (controllerOf(pod) === undefined) {
      hasUnmanaged = true;
      continue;
    }
    const scale = scaleOf(pod) ?? { problem: `found no controllers for pod ${JSON.stringify(pod.metadata.name)}` };
    if ('problem' in scale) return scale;
    scales.set(scale.uid, scale.replicas);
  }
  return { expected: [...scales.values()].reduce((sum, replicas) => sum + replicas, 0), hasUnmanaged };
}

/**
 * Returns the evicted Pods that are not being deleted yet: `current` still count as disrupted, `overdue` no longer. `next`: when the first
 * of `current` becomes overdue.
 */
function disruptedPods({ budget, pods, now }: DisruptionInput) {
  const known = statusOf(budget).disruptedPods ?? {};
  const current: Record<string, string> = {};
  const overdue: Pod[] = [];
  let next: Millis | undefined;
  for (const pod of pods) {
    const { name } = pod.metadata;
    const since = known[name];
    if (since === undefined || isTerminating(pod)) continue;
    const until = (parseTime(since) ?? 0) + DELETION_TIMEOUT_MILLIS;
    if (until <= now) {
      overdue.push(pod);
      continue;
    }
    current[name] = since;
    next = Math.min(next ?? until, until);
  }
  return { current, overdue, next };
}

const notDeleted = (pod: Pod, { metadata }: PodDisruptionBudget): Decision['events'][number] => ({
  object: pod,
  type: 'Warning',
  reason: 'NotDeleted',
  message: `Pod was expected by PDB ${metadata.namespace}/${metadata.name} to be deleted but it wasn't`,
});

const unmanaged = (budget: PodDisruptionBudget): Decision['events'][number] => ({
  object: budget,
  type: 'Warning',
  reason: 'UnmanagedPods',
  message: `Pods selected by this PodDisruptionBudget (selector: ${selectorText(budget.spec?.selector)}) were found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an integer value.`,
});

/** Formats the selector as Go does. */
function selectorText(selector: LabelSelector | undefined): string {
  if (selector === undefined) return 'nil';
  const labels = Object.entries(selector.matchLabels ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  const expressions = (selector.matchExpressions ?? []).map(
    ({ key, operator, values = [] }) =>
      `LabelSelectorRequirement{Key:${key},Operator:${operator},Values:[${values.join(' ')}],},`,
  );
  const texts = labels.map(([key, value]) => `${key}: ${value},`);
  return `&LabelSelector{MatchLabels:map[string]string{${texts.join('')}},MatchExpressions:[]LabelSelectorRequirement{${expressions.join('')}},}`;
}
