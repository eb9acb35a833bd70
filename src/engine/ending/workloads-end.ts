/**
 * Ends the workloads of an engine for `lifepod down`: the controllers create no more Pods, and the static Pods, which cannot be deleted
 * through the API, end.
 *
 * Invariant: the workloads are ended only while a client asks for it, or while the engine stops. If each client has withdrawn its request,
 * for example because `lifepod down` was interrupted or killed, the workloads run again.
 */
import type { EndWorkloads } from '../../apiserver/serve-end-workloads.ts';
import type { Pause } from '../../client/work-queue.ts';
import type { NodeAgent } from '../../node/agent.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { Log } from '../../platform/platform.ts';

export interface WorkloadsEnd extends Pause {
  /** Several clients may ask at the same time. The shortest of their grace periods applies, as to other Pods. */
  begin: EndWorkloads;
  /** Call it when the node agent has started. */
  connect(staticPods: NodeAgent['staticPods']): void;
}

interface WorkloadsEndOptions {
  log: Log;
  /** Aborts when the engine stops, which ends the requests of its clients. */
  stopping: AbortSignal;
  /** Called when the workloads end, and when they run again. */
  changed(isEnding: boolean): void;
}

export function createWorkloadsEnd({ log, stopping, changed }: WorkloadsEndOptions): WorkloadsEnd {
  /** The grace periods by request. */
  const requests = new Map<AbortSignal, number | undefined>();
  const listeners: (() => void)[] = [];
  let staticPods: NodeAgent['staticPods'] | undefined;
  const endStaticPods = (): void => {
    const given = [...requests.values()].filter((seconds) => seconds !== undefined);
    staticPods?.endAll(given.length === 0 ? undefined : Math.min(...given));
  };
  const withdraw = (request: AbortSignal): void => {
    if (stopping.aborted) return;
    requests.delete(request);
    if (requests.size > 0) return;
    log.info('the end of the workloads was withdrawn: they run again');
    changed(false);
    staticPods?.runAll();
    for (const listener of listeners) listener();
  };

  return {
    isActive: () => requests.size > 0,
    onEnd: (listener) => void listeners.push(listener),
    begin(seconds, until) {
      requests.set(until, seconds);
      changed(true);
      endStaticPods();
      onAbort(until, () => withdraw(until));
    },
    connect(connected) {
      staticPods = connected;
      if (requests.size > 0) endStaticPods();
    },
  };
}
