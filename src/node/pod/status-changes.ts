/**
 * A container that starts passes through several states within a few hundred milliseconds. A single write for all these states causes fewer
 * conflicts for clients that read and then update the Pod.
 */
import { isFinalPhase } from '../../api/core/v1/pod/status/final-phase.ts';
import type { ContainerStatus, PodCondition, PodStatus } from '../../api/generated/types.ts';
import { jsonEqual } from '../../machinery/json-value.ts';

/** A step of a container's start is written after this time at the latest. */
export const PASSING_MILLIS = 250;
/** If only the observedGeneration has changed, it is written after this time at the latest. */
export const GENERATION_MILLIS = 5000;

/** Fields of which some changes may wait. A change of any other field is written immediately. */
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

/** A change of this condition may wait, because the start of a container follows soon. */
const SANDBOX_CONDITION = 'PodReadyToStartContainers';

const ABOUT_TO_START: ReadonlySet<string> = new Set(['ContainerCreating', 'PodInitializing']);

/**
 * Returns how many milliseconds the change from the written status to `next` may wait for a further change: GENERATION_MILLIS if only an
 * observedGeneration has changed; PASSING_MILLIS if all changes are steps of containers' starts; otherwise 0.
 */
export function mayWaitMillis(written: PodStatus, next: PodStatus): number {
  if (written.startTime === undefined) return 0;
  if (jsonEqual(withoutGeneration(written), withoutGeneration(next))) return GENERATION_MILLIS;
  const isPassing =
    !isFinalPhase(next.phase) &&
    jsonEqual(otherFields(written), otherFields(next)) &&
    jsonEqual(awaited(written.conditions), awaited(next.conditions)) &&
    areAllPassing(written.initContainerStatuses, next.initContainerStatuses) &&
    areAllPassing(written.containerStatuses, next.containerStatuses);
  return isPassing ? PASSING_MILLIS : 0;
}

function otherFields(status: PodStatus): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(status)) if (!COMPARED_IN_PARTS.has(field)) fields[field] = value;
  return fields;
}

/** The order of the conditions has no meaning. */
function byType(conditions: readonly PodCondition[], read: (condition: PodCondition) => unknown) {
  const values: Record<string, unknown> = {};
  for (const condition of conditions) values[condition.type] = read(condition);
  return values;
}

const awaited = (conditions: readonly PodCondition[] = []): Record<string, unknown> =>
  byType(conditions, ({ type, status, reason = '', message = '' }) =>
    type === SANDBOX_CONDITION ? undefined : [status, reason, message],
  );

const withoutGeneration = ({ observedGeneration: _, conditions = [], ...status }: PodStatus): unknown => [
  status,
  byType(conditions, ({ observedGeneration: _generation, ...condition }) => condition),
];

function areAllPassing(written: readonly ContainerStatus[] = [], next: readonly ContainerStatus[] = []): boolean {
  const before = new Map(written.map((status) => [status.name, status]));
  return next.every((status) => {
    const old = before.get(status.name);
    return old !== undefined && isStepOfStart(old, status);
  });
}

function isStepOfStart(old: ContainerStatus, next: ContainerStatus): boolean {
  const { waiting, terminated } = next.state ?? {};
  const ends = [old.state?.terminated, old.lastState?.terminated];
  const newEnds = [terminated, next.lastState?.terminated].filter(
    (end) => !ends.some((known) => jsonEqual(known, end)),
  );
  if (newEnds.some((end) => end !== undefined) || next.ready !== old.ready) return false;
  return waiting === undefined || ABOUT_TO_START.has(waiting.reason ?? '') || jsonEqual(waiting, old.state?.waiting);
}
