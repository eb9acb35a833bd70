/**
 * Tells the log source which runs a container has, and when one ends, from what the workers observe.
 */
import { join } from 'node:path';
import type { Pod } from '../api/generated/types.ts';
import type { ContainerState } from '../lifecycle/types.ts';
import { containerLogPath, podLogDirectory } from './container-config.ts';
import type { ContainerLogs, LoggedAttempt } from './logs.ts';

export interface LogLookup {
  /** A worker has seen these runs of its Pod; none: the Pod is gone. */
  observed(podUid: string, runs: readonly ContainerState[]): void;
  lookup(podUid: string, container: string): ContainerLogs | undefined;
}

interface Ending {
  promise: Promise<void>;
  resolve(): void;
}

export function createLogLookup(logsRoot: string, podOf: (uid: string) => Pod | undefined): LogLookup {
  const runsOf = new Map<string, readonly ContainerState[]>();
  /** Of runs that someone follows, by container ID. */
  const endings = new Map<string, Ending>();

  const endingOf = (run: ContainerState): Promise<void> => {
    if (run.state === 'exited') return Promise.resolve();
    let ending = endings.get(run.id);
    if (ending === undefined) {
      ending = Promise.withResolvers<void>();
      endings.set(run.id, ending);
    }
    return ending.promise;
  };
  return {
    observed(podUid, runs) {
      const before = runsOf.get(podUid) ?? [];
      if (runs.length === 0) runsOf.delete(podUid);
      else runsOf.set(podUid, runs);
      for (const { id } of before) {
        if (runs.some((run) => run.id === id && run.state !== 'exited')) continue;
        endings.get(id)?.resolve();
        endings.delete(id);
      }
    },
    lookup(podUid, container) {
      const pod = podOf(podUid);
      if (pod === undefined) return undefined;
      const folder = podLogDirectory(pod, logsRoot);
      const attempts = (runsOf.get(podUid) ?? [])
        .filter(({ name }) => name === container)
        .map(
          (run): LoggedAttempt => ({
            attempt: run.attempt,
            path: join(folder, containerLogPath(container, run.attempt)),
            state: run.state,
            ended: endingOf(run),
          }),
        );
      const statuses = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])];
      const waitingReason = statuses.find(({ name }) => name === container)?.state?.waiting?.reason;
      return { attempts, ...(waitingReason === undefined ? {} : { waitingReason }) };
    },
  };
}
