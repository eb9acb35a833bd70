/** Finds the runs, logs and sandboxes of Pods for other parts of the node, based on the workers' last observations. */
import { join } from 'node:path';
import { recordedStatuses } from '../../api/core/v1/pod/status/statuses.ts';
import type { ContainerStatus, Pod } from '../../api/generated/types.ts';
import type { ContainerState } from '../../lifecycle/types.ts';
import { containerLogPath, podLogDirectory } from '../container/container-config.ts';
import type { WrittenLog } from '../logs/log-rotation.ts';
import type { ContainerLogs, LoggedAttempt } from '../logs/log-source.ts';
import type { RuntimeView } from './worker/ports.ts';

export interface RunLookup {
  /** A view without runs and sandboxes means that nothing of the Pod is in the runtime. */
  observed(podUid: string, view: RuntimeView): void;
  /** Returns undefined if the Pod is unknown. */
  logs(podUid: string, container: string): ContainerLogs | undefined;
  running(podUid: string, container: string): string | undefined;
  sandbox(podUid: string): string | undefined;
  /** Returns the last observation of the Pod; if there was none, a view without runs and sandboxes. */
  view(podUid: string): RuntimeView;
  /** Calls the listener with the logs of each Pod's runs, now and after each observation of that Pod; with [] after the Pod has ended. */
  followLogs(listener: (podUid: string, logs: readonly WrittenLog[]) => void): void;
}

export interface RunLookupOptions {
  logsRoot: string;
  podOf(uid: string): Pod | undefined;
  /** Resolves when the log of the exited container is complete. Rejects if the node ends. */
  logEnded(containerId: string): Promise<void>;
}

export function createRunLookup({ logsRoot, podOf, logEnded }: RunLookupOptions): RunLookup {
  const viewOf = new Map<string, RuntimeView>();
  const runsOf = (podUid: string): readonly ContainerState[] => viewOf.get(podUid)?.containers ?? [];
  const endings = createEndings();
  const logListeners: Parameters<RunLookup['followLogs']>[0][] = [];
  const writtenLogs = (podUid: string): WrittenLog[] => {
    const pod = podOf(podUid);
    return pod === undefined ? [] : writtenLogsOf(pod, runsOf(podUid), logsRoot);
  };
  return {
    observed(podUid, view) {
      const before = runsOf(podUid);
      if (view.containers.length === 0 && view.sandboxes.length === 0) viewOf.delete(podUid);
      else viewOf.set(podUid, view);
      endings.observed(before, view.containers);
      for (const listener of logListeners) listener(podUid, writtenLogs(podUid));
    },
    logs(podUid, container) {
      const pod = podOf(podUid);
      if (pod === undefined) return undefined;
      const attempts = runsOf(podUid)
        .filter(({ name }) => name === container)
        .map((run): LoggedAttempt => {
          const { attempt, state } = run;
          const logHasEnded = (): Promise<void> => logEnded(run.id).catch(() => undefined);
          return { attempt, path: logPath(pod, run, logsRoot), state, ended: () => endings.of(run).then(logHasEnded) };
        });
      const removed = attempts.length === 0 ? removedAttempt(pod, container, logsRoot) : undefined;
      const waitingReason = statusOf(pod, container)?.state?.waiting?.reason;
      return { attempts: removed === undefined ? attempts : [removed], waitingReason };
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

interface Endings {
  /** Resolves when the run is observed as exited, or no longer exists. */
  of(run: ContainerState): Promise<void>;
  observed(before: readonly ContainerState[], now: readonly ContainerState[]): void;
}

function createEndings(): Endings {
  /** The runs whose end is awaited, by container ID. */
  const awaited = new Map<string, PromiseWithResolvers<void>>();
  return {
    of(run) {
      if (run.state === 'exited') return Promise.resolve();
      const ending = awaited.get(run.id) ?? Promise.withResolvers<void>();
      awaited.set(run.id, ending);
      return ending.promise;
    },
    observed(before, now) {
      const unfinished = new Set(now.filter(({ state }) => state !== 'exited').map(({ id }) => id));
      for (const { id } of before) {
        if (unfinished.has(id)) continue;
        awaited.get(id)?.resolve();
        awaited.delete(id);
      }
    },
  };
}

const logPath = (pod: Pod, { name, attempt }: Pick<ContainerState, 'name' | 'attempt'>, logsRoot: string): string =>
  join(podLogDirectory(pod, logsRoot), containerLogPath(name, attempt));

const writtenLogsOf = (pod: Pod, runs: readonly ContainerState[], logsRoot: string): WrittenLog[] =>
  runs
    .filter(({ state }) => state === 'running' || state === 'exited')
    .map((run) => ({ containerId: run.id, path: logPath(pod, run, logsRoot), ended: run.state === 'exited' }));

const statusOf = (pod: Pod, container: string): ContainerStatus | undefined =>
  recordedStatuses(pod).find(({ name }) => name === container);

/**
 * The runs of the container were removed from the runtime, for example to free disk space, but the log of the last run is kept as long as
 * the Pod exists. Returns undefined if the status shows no terminated run.
 */
function removedAttempt(pod: Pod, container: string, logsRoot: string): LoggedAttempt | undefined {
  const { state, restartCount: attempt = 0 } = statusOf(pod, container) ?? {};
  if (!state?.terminated?.containerID) return undefined;
  const path = logPath(pod, { name: container, attempt }, logsRoot);
  return { attempt, path, state: 'exited', ended: async () => undefined };
}
