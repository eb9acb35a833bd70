/** The statuses of a Pod's containers, and the runs that they are about. */
import type { ContainerStatus, Pod } from '../../../../generated/types.ts';

/** The statuses of the Pod's containers of every kind. */
export const recordedStatuses = ({ status }: Pick<Pod, 'status'>): ContainerStatus[] => [
  ...(status?.initContainerStatuses ?? []),
  ...(status?.containerStatuses ?? []),
  ...(status?.deferContainerStatuses ?? []),
  ...(status?.ephemeralContainerStatuses ?? []),
];

/** The ID of the run that a status, or the end in it, is about. */
export const shownId = (shown: { containerID?: string } | undefined): string | undefined =>
  shown?.containerID?.split('//')[1];

/**
 * For each container whose end the Pod's status shows: that run and those before, the oldest first. They are removed in this
 * order: otherwise an older run that is left would be taken for the last.
 */
export function toldRuns<Run extends { id: string; name: string; attempt: number }>(pod: Pod, runs: readonly Run[]) {
  const byId = new Map(runs.map((run) => [run.id, run]));
  const byName = Map.groupBy(runs, ({ name }) => name);
  return recordedStatuses(pod).flatMap(({ name, state }) => {
    const last = byId.get(shownId(state?.terminated) ?? '');
    if (last === undefined) return [];
    const told = (byName.get(name) ?? []).filter(({ attempt }) => attempt <= last.attempt);
    return [told.sort((a, b) => a.attempt - b.attempt)];
  });
}
