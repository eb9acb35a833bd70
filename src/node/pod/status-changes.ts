/**
 * Decides which changes of a Pod's status are written at once, and which wait for the change that will follow. A restart or a start passes
 * through several states within some hundred milliseconds. One write for all of them leaves clients that read and update the Pod
 * fewer conflicts.
 */
import { isFinalPhase } from '../../api/core/v1/pod/status/final-phase.ts';
import type { ContainerStatus, PodCondition, PodStatus } from '../../api/generated/types.ts';

/** How long a passing state waits at most: longer than the start of a container takes, too short for a person to notice. */
export const PASSING_MILLIS = 250;
/** How long a new observedGeneration waits at most, if nothing else changes. */
export const GENERATION_MILLIS = 5000;

/** Fields that may change within a passing state. Other fields are compared by value. */
const COMPARED_IN_PARTS = new Set<string>([
  'observedGeneration',
  'startTime',
  'conditions',
  'podIP',
  'podIPs',
  'hostIP',
  'hostIPs',
  'initContainerStatuses',
  'containerStatuses',
]);

/** The condition that the start of a container soon implies. Clients wait for the other conditions. */
const SANDBOX_CONDITION = 'PodReadyToStartContainers';

/** Reasons of waiting containers that are about to start. */
const ABOUT_TO_START: ReadonlySet<string> = new Set(['ContainerCreating', 'PodInitializing']);

/**
 * Returns how many milliseconds the change from the written status to `next` may wait for a further change. 0: the change must be
 * written at once, because it is the Pod's first status, changes its phase or readiness, shows the end of a run or a step of the
 * termination, is what clients wait for, or is followed by nothing.
 */
export function mayWaitMillis(written: PodStatus, next: PodStatus): number {
  if (written.startTime === undefined) return 0;
  if (isSame(withoutGeneration(written), withoutGeneration(next))) return GENERATION_MILLIS;
  const isPassing =
    !isFinalPhase(next.phase) &&
    isSame(otherFields(written), otherFields(next)) &&
    isSame(awaited(written.conditions), awaited(next.conditions)) &&
    areAllPassing(written.initContainerStatuses, next.initContainerStatuses) &&
    areAllPassing(written.containerStatuses, next.containerStatuses);
  return isPassing ? PASSING_MILLIS : 0;
}

const otherFields = (status: PodStatus): [string, unknown][] =>
  sorted(Object.entries(status).filter(([field]) => !COMPARED_IN_PARTS.has(field)));

const awaited = (conditions: readonly PodCondition[] = []): [string, unknown][] =>
  sorted(
    conditions
      .filter(({ type }) => type !== SANDBOX_CONDITION)
      .map(({ type, status, reason, message }) => [type, [status, reason ?? '', message ?? '']]),
  );

const withoutGeneration = ({ observedGeneration: _, conditions = [], ...status }: PodStatus): [string, unknown][] =>
  sorted([
    ...Object.entries(status),
    ...conditions.map(({ type, observedGeneration, ...condition }): [string, unknown] => [
      type,
      sorted(Object.entries(condition)),
    ]),
  ]);

/** Sorts the fields, since the status of the API server has them in another order than that of the core. */
const sorted = (fields: [string, unknown][]): [string, unknown][] => fields.sort(([a], [b]) => (a < b ? -1 : 1));

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

function areAllPassing(written: readonly ContainerStatus[] = [], next: readonly ContainerStatus[] = []): boolean {
  const before = new Map(written.map((status) => [status.name, status]));
  return next.every((status) => {
    const old = before.get(status.name);
    return old !== undefined && isStepOfStart(old, status);
  });
}

/** Whether the container's change is a step of its start or restart, and hides no end of a run. */
function isStepOfStart(old: ContainerStatus, next: ContainerStatus): boolean {
  const { waiting, terminated } = next.state ?? {};
  const ends = [old.state?.terminated, old.lastState?.terminated];
  const newEnds = [terminated, next.lastState?.terminated].filter((end) => !ends.some((known) => isSame(known, end)));
  if (newEnds.some((end) => end !== undefined) || next.ready !== old.ready) return false;
  return waiting === undefined || ABOUT_TO_START.has(waiting.reason ?? '') || isSame(waiting, old.state?.waiting);
}
