/**
 * When an eviction threshold of the disk is met, removes the dead containers that their Pods no longer need. They are removed before
 * images, since an image cannot be removed while a container uses it.
 * Boundary: while no threshold of the disk is met, the core (src/lifecycle) decides which containers to remove.
 * Source: "Node-pressure Eviction", "Reclaiming node level resources" (v1.33).
 */
import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import { recordedRuns } from '../../api/core/v1/pod/status/statuses.ts';
import type { Pod } from '../../api/generated/types.ts';
import type { Log } from '../../platform/platform.ts';
import type { ContainerObservation, ContainerRuntime } from '../../runtime/runtime.ts';
import type { ExecutorPorts } from '../pod/executor.ts';

interface PodContainers {
  pod: Pod;
  containers: readonly Run[];
}

type Run = Pick<ContainerObservation, 'id' | 'name' | 'attempt' | 'state'>;

/**
 * Returns the removable runs of each container, oldest first. For a Pod that has ended, these are the run whose end the status shows and
 * all earlier runs, up to the first run that has not exited. For other Pods, these are the exited runs before the running run of a
 * container; none if the Pod is being deleted. The function is pure.
 */
export function deadContainers({ pod, containers }: PodContainers): Run[][] {
  if (hasEnded(pod))
    return recordedRuns(pod, containers).map((runs) => {
      const alive = runs.findIndex(({ state }) => state !== 'exited');
      return runs.slice(0, alive < 0 ? runs.length : alive);
    });
  if (pod.metadata.deletionTimestamp !== undefined) return [];
  const byName = Map.groupBy(containers, ({ name }) => name);
  return containers
    .filter(({ state }) => state === 'running')
    .map((running) =>
      (byName.get(running.name) ?? [])
        .filter(({ attempt, state }) => state === 'exited' && attempt < running.attempt)
        .sort((a, b) => a.attempt - b.attempt),
    );
}

interface DiskPorts extends Pick<ExecutorPorts, 'removeRunFiles'> {
  runtime: Pick<ContainerRuntime, 'observeAll' | 'removeContainer' | 'collectGarbage'>;
  log: Log;
}

/**
 * Failed removals are logged. Resolves when the runtime has freed the disk space. Rejects if the runtime cannot list its containers or
 * cannot free the disk space.
 */
export async function removeDeadContainers(pods: readonly Pod[], ports: DiskPorts, signal: AbortSignal): Promise<void> {
  const { runtime, log } = ports;
  // If the agent has just started, the workers may not have observed the runtime yet.
  const seen = await runtime.observeAll(signal);
  for (const pod of pods) {
    const { name, namespace, uid = '' } = pod.metadata;
    const dead = deadContainers({ pod, containers: seen.get(uid)?.containers ?? [] });
    const count = dead.flat().length;
    if (count === 0) continue;
    log.info('the disk is short of space: removing dead containers of a Pod', { pod: `${namespace}/${name}`, count });
    for (const runs of dead) await removeInOrder(pod, runs, ports, signal);
  }
  // This also frees the disk space of containers that were removed earlier, such as those of evicted Pods.
  await runtime.collectGarbage?.(signal);
}

/** Stops at the first failure, so that no run is removed before an older run of the same container. */
async function removeInOrder(
  pod: Pod,
  runs: readonly Run[],
  { runtime, removeRunFiles, log }: DiskPorts,
  signal: AbortSignal,
): Promise<void> {
  for (const run of runs) {
    try {
      await runtime.removeContainer(run.id, signal);
      await removeRunFiles(pod, run);
    } catch (error) {
      log.warn('cannot remove a dead container', { id: run.id, error: String(error) });
      return;
    }
  }
}
