import { deletionPostponedSeconds } from '../api/core/v1/pod/strategy.ts';
import type { Pod } from '../api/generated/types.ts';
import { formatTime, parseTime } from '../machinery/time.ts';

/** As the API does: the deletion's time moves with the deadline of the termination. */
export function followTermination(pod: Pod, old: Pod): Pod {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = pod.metadata;
  const seconds = deletionPostponedSeconds(pod, old);
  if (seconds === 0) return pod;
  const metadata = {
    ...pod.metadata,
    deletionTimestamp: formatTime((parseTime(deletionTimestamp) ?? 0) + seconds * 1000),
    deletionGracePeriodSeconds: deletionGracePeriodSeconds + seconds,
  };
  return { ...pod, metadata };
}
