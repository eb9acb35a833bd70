/** Container statuses of a Pod, and the runs that they describe. */
import type { ContainerStatus, Pod } from '../../../../generated/types.ts';

/** The statuses of all containers of the Pod. */
export const recordedStatuses = ({ status }: Pick<Pod, 'status'>): ContainerStatus[] => [
  ...(status?.initContainerStatuses ?? []),
  ...(status?.containerStatuses ?? []),
  ...(status?.deferContainerStatuses ?? []),
  ...(status?.ephemeralContainerStatuses ?? []),
];

/** The ID of the run that a status or a terminated state describes. */
export const shownId = (shown: { containerID?: string } | undefined): string | undefined =>
  shown?.containerID?.split('//')[1];

/**
 * For each container whose end is recorded in the Pod's status: that run and all earlier ones, oldest first. They must be removed
 * in this order, because otherwise a remaining older run would look like the latest.
 */
export function recordedRuns<Run extends { id: string; name: string; attempt: number }>(
  pod: Pod,
  runs: readonly Run[],
) {
  const byId = new Map(runs.map((run) => [run.id, run]));
  const byName = Map.groupBy(runs, ({ name }) => name);
  return recordedStatuses(pod).flatMap(({ name, state }) => {
    const last = byId.get(shownId(state?.terminated) ?? '');
    if (last === undefined) return [];
    const recorded = (byName.get(name) ?? []).filter(({ attempt }) => attempt <= last.attempt);
    return [recorded.sort((a, b) => a.attempt - b.attempt)];
  });
}
