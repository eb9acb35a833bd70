/** The functions are pure. Source: pkg/kubelet/nodeshutdown of v1.33 (groups of Pods by priority). */
import type { Pod } from '../../api/generated/types.ts';
import { CRITICAL_PRIORITY } from '../../scheduling/critical-pods.ts';

export interface ShutdownPeriod {
  /** The lowest priority of the Pods in this period. The first period also includes all Pods with a lower priority. */
  priority: number;
  seconds: number;
}

/** The last `criticalSeconds` are for critical Pods, and the time before that for other Pods. */
export const periodsOf = (graceSeconds: number, criticalSeconds: number): ShutdownPeriod[] => [
  { priority: 0, seconds: graceSeconds - criticalSeconds },
  { priority: CRITICAL_PRIORITY, seconds: criticalSeconds },
];

/**
 * Parses PRIORITY=SECONDS, such as `100000=10,0=30`, into periods of ascending priority. Throws an Error that names `option` and the
 * invalid part or the repeated priority.
 */
export function parsePeriods(option: string, text: string): ShutdownPeriod[] {
  const periods = text.split(',').map((part): ShutdownPeriod => {
    const [, priority, seconds] = /^\s*(-?\d+)\s*=\s*(\d+)\s*$/.exec(part) ?? [];
    if (priority === undefined || seconds === undefined)
      throw new Error(`${option}: ${JSON.stringify(part)} is not PRIORITY=SECONDS, such as 100000=10`);
    return { priority: Number(priority), seconds: Number(seconds) };
  });
  periods.sort((a, b) => a.priority - b.priority);
  const twice = periods.find(({ priority }, index) => periods[index + 1]?.priority === priority);
  if (twice !== undefined) throw new Error(`${option}: the priority ${twice.priority} is given twice`);
  return periods;
}

/**
 * Returns the index of the last period whose priority is not higher than the Pod's, or else of the first period. `periods` must be in
 * ascending order of priority.
 */
export function groupOf({ spec }: Pod, periods: readonly ShutdownPeriod[]): number {
  const own = spec?.priority ?? 0;
  return Math.max(
    0,
    periods.findLastIndex(({ priority }) => priority <= own),
  );
}
