/**
 * Looks up the runs of containers, their logs and when they end, for logs and streams, based on the workers' observations.
 */
import { join } from 'node:path';
import { recordedStatuses } from '../../api/core/v1/pod/status/statuses.ts';
import type { Pod } from '../../api/generated/types.ts';
import type { ContainerState } from '../../lifecycle/types.ts';
import { containerLogPath, podLogDirectory } from '../container/container-config.ts';
import type { WrittenLog } from '../logs/log-rotation.ts';
import type { ContainerLogs, LoggedAttempt } from '../logs/log-source.ts';
import type { RuntimeView } from './worker-ports.ts';

export interface RunLookup {
  /** A worker observed this state of its Pod. A view without runs and sandboxes means that the Pod no longer exists. */
  observed(podUid: string, view: RuntimeView): void;
  logs(podUid: string, container: string): ContainerLogs | undefined;
  /** The container ID of the running run, if any. */
  running(podUid: string, container: string): string | undefined;
  /** The ID of the Pod's ready sandbox, if any. */
  sandbox(podUid: string): string | undefined;
  /** The last observation of the Pod, without runs and sandboxes if there was none. */
  view(podUid: string): RuntimeView;
  /** Calls the listener with the logs of each Pod's runs, now and after each observation; with [] once the Pod no longer exists. */
  followLogs(listener: (podUid: string, logs: readonly WrittenLog[]) => void): void;
}

interface Ending {
  promise: Promise<void>;
  resolve(): void;
}

export function createRunLookup(logsRoot: string, podOf: (uid: string) => Pod | undefined): RunLookup {
  const viewOf = new Map<string, RuntimeView>();
  const runsOf = (podUid: string): readonly ContainerState[] => viewOf.get(podUid)?.containers ?? [];
  /** The ends that a follower waits for, by container ID. */
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
  const logOf = (pod: Pod, { name, attempt }: ContainerState): string =>
    join(podLogDirectory(pod, logsRoot), containerLogPath(name, attempt));
  const logListeners: Parameters<RunLookup['followLogs']>[0][] = [];
  const writtenLogs = (podUid: string): WrittenLog[] => {
    const pod = podOf(podUid);
    if (pod === undefined) return [];
    return runsOf(podUid)
      .filter(({ state }) => state === 'running' || state === 'exited')
      .map((run) => ({ containerId: run.id, path: logOf(pod, run), ended: run.state === 'exited' }));
  };
  return {
    observed(podUid, view) {
      const before = runsOf(podUid);
      const runs = view.containers;
      const unfinished = new Set(runs.filter(({ state }) => state !== 'exited').map(({ id }) => id));
      if (runs.length === 0 && view.sandboxes.length === 0) viewOf.delete(podUid);
      else viewOf.set(podUid, view);
      for (const { id } of before) {
        if (unfinished.has(id)) continue;
        endings.get(id)?.resolve();
        endings.delete(id);
      }
      for (const listener of logListeners) listener(podUid, writtenLogs(podUid));
    },
    logs(podUid, container) {
      const pod = podOf(podUid);
      if (pod === undefined) return undefined;
      const attempts = runsOf(podUid)
        .filter(({ name }) => name === container)
        .map(
          (run): LoggedAttempt => ({
            attempt: run.attempt,
            path: logOf(pod, run),
            state: run.state,
            ended: endingOf(run),
          }),
        );
      const { state, restartCount = 0 } = recordedStatuses(pod).find(({ name }) => name === container) ?? {};
      // The container was removed to free disk space. Its log is kept as long as the Pod exists.
      if (attempts.length === 0 && state?.terminated?.containerID) {
        const path = join(podLogDirectory(pod, logsRoot), containerLogPath(container, restartCount));
        attempts.push({ attempt: restartCount, path, state: 'exited', ended: Promise.resolve() });
      }
      const waitingReason = state?.waiting?.reason;
      return { attempts, ...(waitingReason === undefined ? {} : { waitingReason }) };
    },
    view: (podUid) => viewOf.get(podUid) ?? { sandboxes: [], containers: [] },
    running: (podUid, container) =>
      runsOf(podUid).find(({ name, state }) => name === container && state === 'running')?.id,
    followLogs(listener) {
      logListeners.push(listener);
      for (const podUid of viewOf.keys()) listener(podUid, writtenLogs(podUid));
    },
    sandbox: (podUid) => viewOf.get(podUid)?.sandboxes.find(({ ready }) => ready)?.id,
  };
}
