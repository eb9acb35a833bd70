/** What `lifepod status` says of a Pod that is not well: one line. Pure. */
import { podSummary } from '../../api/core/v1/pod/status/summary.ts';
import type { Pod } from '../../api/generated/types.ts';
import { imageOf, lacksImage, podContainers } from '../pod-containers.ts';

/** The summary of a Pod while all is well. */
const WELL =
  /^(Running|Completed|Succeeded|Pending|ContainerCreating|PodInitializing|Terminating|Init:\d+\/\d+|Defer:\d+\/\d+)$/;

/** undefined: it is well. */
export function podTrouble(pod: Pod): string | undefined {
  const { metadata, status } = pod;
  const shown = podSummary(pod).status;
  const unscheduled = status?.conditions?.find((each) => each.type === 'PodScheduled' && each.status === 'False');
  const entry = entryTrouble(pod);
  if (WELL.test(shown) && unscheduled === undefined && entry === undefined) return undefined;
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  const waiting = statuses.find(({ state }) => state?.waiting?.message !== undefined)?.state?.waiting?.message;
  const why = waiting ?? status?.message ?? unscheduled?.message ?? entry;
  return `Pod ${metadata.namespace}/${metadata.name}: ${shown}${why === undefined ? '' : `: ${why}`}`;
}

/** Entries of the list of defer containers whose images cannot be had, and one that is tried again. */
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
  return failing === undefined ? undefined : `defer container ${failing.name} fails and is tried again`;
}

const oneLine = (text = ''): string => text.replaceAll(/\s+/g, ' ').trim();
