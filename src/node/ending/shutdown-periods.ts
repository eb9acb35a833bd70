/**
 * Which Pods have how much time when the machine shuts down. Pure.
 * Source: pkg/kubelet/nodeshutdown of v1.33 (groups of Pods by priority).
 */
import type { Pod } from '../../api/generated/types.ts';
import { CRITICAL_PRIORITY } from '../../scheduling/critical-pods.ts';

export interface ShutdownPeriod {
  /** Of the Pods from this one to that of the next period; the first period has those below as well. */
  priority: number;
  seconds: number;
}

/** Of a time for all Pods together, of which only critical ones have the last part. */
export const periodsOf = (graceSeconds: number, criticalSeconds: number): ShutdownPeriod[] => [
  { priority: 0, seconds: graceSeconds - criticalSeconds },
  { priority: CRITICAL_PRIORITY, seconds: criticalSeconds },
];

/** Of `100000=10,0=30`: seconds by the lowest priority, in ascending order. Throws an Error that says what cannot be understood. */
export function parsePeriods(option: string, text: string): ShutdownPeriod[] {
  const periods = text.split(',').map((part): ShutdownPeriod => {
    const [, priority, seconds] = /^\s*(-?\d+)\s*=\s*(\d+)\s*$/.exec(part) ?? [];
    if (priority === undefined || seconds === undefined)
      throw new Error(`${option}: ${JSON.stringify(part)} is not PRIORITY=SECONDS, such as 100000=10`);
    return { priority: Number(priority), seconds: Number(seconds) };
  });
  periods.sort((a, b) => a.priority - b.priority);
  const twice = periods.find(({ priority }, index) => periods[index + 1]?.priority === priority);
  if (twice !== undefined) throw new Error(`${option}: the priority ${twice.priority} stands there twice`);
  return periods;
}

/** The index of the period in which the Pod is ended. */
export function groupOf({ spec }: Pod, periods: readonly ShutdownPeriod[]): number {
  const own = spec?.priority ?? 0;
  return Math.max(
    0,
    periods.findLastIndex(({ priority }) => priority <= own),
  );
}
