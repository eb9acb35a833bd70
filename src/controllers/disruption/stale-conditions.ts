/**
 * Sets the condition DisruptionTarget of a Pod to False if the Pod was not deleted within two minutes: the component that was going to
 * delete the Pod no longer does so, or has died.
 * Source: syncStalePodDisruption of pkg/controller/disruption/disruption.go of v1.33 (behavior).
 */
import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import { isTerminating } from '../../api/core/v1/pod/status/healthy.ts';
import type { Pod, PodCondition } from '../../api/generated/types.ts';
import { PODS } from '../../api/resources.ts';
import { unlessChanged } from '../../client/unless-changed.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { formatTime, type Millis, parseTime } from '../../machinery/time.ts';
import type { ControllerOptions } from '../controller.ts';
import { createWakes } from '../wakes.ts';

const STALE_MILLIS = 120_000;

const keyOf = ({ metadata }: Pod): string => `${metadata.namespace}/${metadata.name}`;

/** Returns when the condition becomes stale; undefined if never. */
export function staleAt(pod: Pod): Millis | undefined {
  if (isTerminating(pod) || hasEnded(pod)) return undefined;
  const condition = pod.status?.conditions?.find(({ type }) => type === 'DisruptionTarget');
  // A node that ends a Pod may take any time until it reports the end.
  if (condition?.status !== 'True' || condition.reason === 'TerminationByKubelet') return undefined;
  return (parseTime(condition.lastTransitionTime) ?? 0) + STALE_MILLIS;
}

/** Resolves once the Pods have been read. */
export async function startStaleConditions(options: ControllerOptions): Promise<void> {
  const { client, informers, timers, log, signal } = options;
  const podClient = client.resource<Pod>(PODS);
  const queue = createWorkQueue({ name: 'stale_pod_disruption', process, log, timers, signal });
  const wakes = createWakes(timers, signal, queue.add);
  const consider = (pod: Pod): void => wakes.set(keyOf(pod), staleAt(pod));
  const pods = informers.follow<Pod>(
    PODS,
    { signal },
    { added: consider, updated: consider, deleted: (pod) => wakes.cancel(keyOf(pod)) },
  );
  await pods.synced;

  async function process(key: string): Promise<void> {
    const [namespace, name] = key.split('/') as [string, string];
    const pod = pods.get(namespace, name);
    const at = pod === undefined ? undefined : staleAt(pod);
    const now = timers.now();
    if (pod === undefined || at === undefined || at > now) return;
    const conditions = (pod.status?.conditions ?? []).map((each) =>
      each.type === 'DisruptionTarget' ? reset(now) : each,
    );
    // The informer reports the changed Pod, and its handler sets the next wake.
    await unlessChanged(podClient.updateStatus({ ...pod, status: { ...pod.status, conditions } }));
  }
}

const reset = (now: Millis): PodCondition => ({
  type: 'DisruptionTarget',
  status: 'False',
  lastTransitionTime: formatTime(now),
});
