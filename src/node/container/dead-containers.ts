/**
 * Containers that are dead and told of: while the disk is full they go before images do, which they hold on to.
 * Boundary: what is kept while there is room is the core's (lifecycle/progress.ts). Statuses stay, and of each container the
 * last log.
 * Source: "Node-pressure Eviction", "Reclaiming node level resources" (v1.33).
 */
import { hasEnded } from '../../api/core/v1/pod/status/phase.ts';
import { toldRuns } from '../../api/core/v1/pod/status/statuses.ts';
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
 * Runs by container, the oldest first: of Pods that have ended those whose end the status tells of; of others the runs before
 * one that runs. Pure.
 */
export function deadContainers({ pod, containers }: PodContainers): Run[][] {
  if (hasEnded(pod))
    return toldRuns(pod, containers).map((runs) => {
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

/** Resolves when all that could be removed are, and the disk has what they had written. */
export async function removeDeadContainers(pods: readonly Pod[], ports: DiskPorts, signal: AbortSignal): Promise<void> {
  const { runtime, log } = ports;
  // Asked anew: after a start the workers may not have looked yet.
  const seen = await runtime.observeAll(signal);
  for (const pod of pods) {
    const { name, namespace, uid = '' } = pod.metadata;
    const dead = deadContainers({ pod, containers: seen.get(uid)?.containers ?? [] });
    const count = dead.flat().length;
    if (count === 0) continue;
    log.info('the disk is full: removing dead containers of a Pod', { pod: `${namespace}/${name}`, count });
    for (const runs of dead) await removeInOrder(pod, runs, ports, signal);
  }
  // Also of those that were removed before, of evicted Pods.
  await runtime.collectGarbage?.(signal);
}

/** Ends at the first that stays: a newer one is never gone before it. */
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
      log.warn('a dead container stays', { id: run.id, error: String(error) });
      return;
    }
  }
}
