/** Keeps the CPU shares of the control group that contains all Burstable Pods proportional to the sum of the Pods' CPU requests. */
import type { Pod } from '../../api/generated/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import type { Cgroups } from '../../platform/control-groups/cgroups.ts';
import type { Log } from '../../platform/platform.ts';
import { cpuShares, podCpuRequest, qosClass } from './container-resources.ts';

export interface BurstableShares {
  add(pod: Pod): void;
  remove(pod: Pod): void;
  /** Resolves when the shares for all requests are written, or could not be written. */
  written(): Promise<void>;
}

/** `group`: the path of the control group. A failed write is logged, and is retried only when the next Pod is added or removed. */
export function createBurstableShares(cgroups: Pick<Cgroups, 'set'>, group: string, log: Log): BurstableShares {
  /** The CPU requests in thousandths of a CPU, by Pod UID. */
  const requests = new Map<string, number>();
  const wanted = (): number => cpuShares([...requests.values()].reduce((sum, each) => sum + each, 0));
  let writing: Promise<void> | undefined;

  /** If the sum has changed during a write, writes again. */
  const write = async (): Promise<void> => {
    for (let written: number | undefined; written !== wanted(); ) {
      written = wanted();
      await cgroups.set(group, { cpuShares: written }).catch((error: unknown) => {
        log.warn('cannot update the CPU shares of Burstable Pods', { error: String(error) });
      });
    }
    writing = undefined;
  };
  return {
    add(pod) {
      if (qosClass(pod) !== 'Burstable') return;
      requests.set(uidOf(pod), podCpuRequest(pod));
      writing ??= write();
    },
    remove(pod) {
      if (requests.delete(uidOf(pod))) writing ??= write();
    },
    written: async () => writing,
  };
}
