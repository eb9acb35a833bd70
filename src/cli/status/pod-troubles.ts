/** Composes the line of `lifepod status` about an unhealthy Pod. Pure. */
import { podSummary } from '../../api/core/v1/pod/status/summary.ts';
import type { Pod } from '../../api/generated/types.ts';
import { imageOf, lacksImage, podContainers } from '../pod-containers.ts';

/** Values of the STATUS column of kubectl get that do not indicate a problem. */
const HEALTHY =
  /^(Running|Completed|Succeeded|Pending|ContainerCreating|PodInitializing|Terminating|Init:\d+\/\d+|Defer:\d+\/\d+)$/;

/** Returns the line about the Pod; undefined if the Pod is healthy. */
export function podTrouble(pod: Pod): string | undefined {
  const { metadata, status } = pod;
  const shown = podSummary(pod).status;
  const unscheduled = status?.conditions?.find((each) => each.type === 'PodScheduled' && each.status === 'False');
  const entry = entryTrouble(pod);
  if (HEALTHY.test(shown) && unscheduled === undefined && entry === undefined) return undefined;
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  const waiting = statuses.find(({ state }) => state?.waiting?.message !== undefined)?.state?.waiting?.message;
  const why = waiting ?? status?.message ?? unscheduled?.message ?? entry;
  return `Pod ${metadata.namespace}/${metadata.name}: ${shown}${why === undefined ? '' : `: ${why}`}`;
}

/** Describes defer containers whose images cannot be obtained, or one that failed and is retried; undefined if there is neither. */
function entryTrouble(pod: Pod): string | undefined {
  const entries = podContainers(pod).flatMap(({ kind, status }) =>
    kind === 'defer' && status !== undefined ? [status] : [],
  );
  const [first, ...others] = entries.filter(lacksImage);
  if (first !== undefined) {
    const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
    const { reason, message } = first.state?.waiting ?? {};
    return `no image ${imageOf(pod, first)} for defer container ${first.name}${more}: ${oneLine(message) || reason}`;
  }
  const failing = entries.find(({ state }) => state?.waiting?.reason === 'CrashLoopBackOff');
  return failing === undefined ? undefined : `defer container ${failing.name} failed and is being retried`;
}

const oneLine = (text = ''): string => text.replaceAll(/\s+/g, ' ').trim();
