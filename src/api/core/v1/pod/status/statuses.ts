import type { ContainerStatus, Pod } from '../../../../generated/types.ts';

export const recordedStatuses = ({ status }: Pick<Pod, 'status'>): ContainerStatus[] => [
  ...(status?.initContainerStatuses ?? []),
  ...(status?.containerStatuses ?? []),
  ...(status?.deferContainerStatuses ?? []),
  ...(status?.ephemeralContainerStatuses ?? []),
];

/** Returns the containerID without its scheme, such as `containerd://`: the ID of a run. Returns undefined if there is no containerID. */
export const shownId = (shown: { containerID?: string } | undefined): string | undefined =>
  shown?.containerID?.split('//')[1];

/**
 * Returns, for each container whose current state is the end of a run in `runs`, that run and all earlier runs of the container, oldest
 * first. The runs must be removed in this order, because otherwise a remaining older run would look like the latest run.
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
