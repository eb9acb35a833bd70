/** Source: pkg/kubelet/nodeshutdown of v1.33 (order, wording). */
import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type { Pod } from '../../api/generated/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import type { Log } from '../../platform/platform.ts';
import type { PodWorker } from '../pod/worker/worker.ts';
import type { EndedPods } from './ended-pods.ts';
import type { NodeEnds } from './pod-terminations.ts';
import { groupOf, type ShutdownPeriod } from './shutdown-periods.ts';

/**
 * The time for killing a Pod after its grace period: 2 s each for its last PreExit defer container, its app containers and its last
 * PostExit defer container.
 */
const KILL_SECONDS = 6;
const MESSAGE = 'Pod was terminated in response to imminent node shutdown.';

export interface ShutdownParts {
  workers: ReadonlyMap<string, PodWorker>;
  ends: Pick<NodeEnds, 'end'>;
  endedPods: EndedPods;
  log: Log;
}

/**
 * Terminates the Pods in groups of ascending priority. The termination of a group starts when all Pods of the previous group have ended or
 * their time is up. At the end, waits up to KILL_SECONDS for the Pods that are being killed. Resolves to the Pods that have not ended.
 */
export async function terminateByPriority(
  periods: readonly ShutdownPeriod[],
  { workers, ends, endedPods, log }: ShutdownParts,
): Promise<Pod[]> {
  const left: Pod[] = [];
  for (const [index, { priority, seconds }] of periods.entries()) {
    const group = [...workers.values()]
      .map((worker) => worker.pod())
      .filter((pod) => !hasEnded(pod) && !endedPods.has(uidOf(pod)) && groupOf(pod, periods) === index);
    log.info('terminating Pods because the node shuts down', { pods: group.length, priority, seconds });
    const groupEnded = endedPods.wait(group, seconds);
    for (const pod of group) ends.end(pod, { reason: 'NodeShutdown', message: MESSAGE, graceSeconds: seconds });
    left.push(...(await groupEnded));
  }
  // The grace period of these Pods is up, so they are being killed now.
  const beingKilled = left.filter((pod) => workers.has(uidOf(pod)) && !endedPods.has(uidOf(pod)));
  return endedPods.wait(beingKilled, KILL_SECONDS);
}
