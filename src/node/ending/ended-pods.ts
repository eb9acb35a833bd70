import type { Pod } from '../../api/generated/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import type { Timers } from '../../platform/platform.ts';

export interface EndedPods {
  /** A Pod without a worker is not stored, because its absence from the list of workers shows that it has ended. */
  add(podUid: string, hasWorker: boolean): void;
  /** Whether the Pod has ended but still has a worker. */
  has(podUid: string): boolean;
  /** Resolves when all Pods have ended, or after `seconds`, with the Pods that have not ended. Only one wait may run at a time. */
  wait(pods: readonly Pod[], seconds: number): Promise<Pod[]>;
}

export function createEndedPods(timers: Timers): EndedPods {
  const uidsWithWorkers = new Set<string>();
  let listener: (podUid: string) => void = () => undefined;
  return {
    add(podUid, hasWorker) {
      if (hasWorker) uidsWithWorkers.add(podUid);
      else uidsWithWorkers.delete(podUid);
      listener(podUid);
    },
    has: (podUid) => uidsWithWorkers.has(podUid),
    wait: (pods, seconds) =>
      new Promise((resolve) => {
        const awaited = new Set(pods.map(uidOf));
        const timer = timers.at(timers.now() + seconds * 1000, () => done());
        const done = (): void => {
          timer.cancel();
          listener = () => undefined;
          resolve(pods.filter((pod) => awaited.has(uidOf(pod))));
        };
        listener = (podUid) => {
          if (awaited.delete(podUid) && awaited.size === 0) done();
        };
        if (awaited.size === 0) done();
      }),
  };
}
