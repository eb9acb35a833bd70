/** The fields and columns that NodeMetrics and PodMetrics share. Source: metrics.k8s.io/v1beta1, metrics-server (behavior). */
import type { KubeObject } from '../../../machinery/meta.ts';
import { formatQuantity } from '../../../machinery/quantity.ts';
import { formatDuration, formatTime } from '../../../machinery/time.ts';
import type { NodeUsage, ResourceUsage } from '../../../ports/node-reports.ts';
import { type CellColumn, column, nameColumn } from '../../table.ts';

export const METRICS_VERSION = 'metrics.k8s.io/v1beta1';

/** The cpu is rounded to nanocores, the memory rounded down to KiB. */
export const usageQuantities = ({ cpuNanoCores, memoryWorkingSetBytes }: ResourceUsage): Record<string, string> => ({
  cpu: formatQuantity({ nano: BigInt(Math.round(cpuNanoCores)), format: 'DecimalSI' }),
  memory: `${Math.floor(memoryWorkingSetBytes / 1024)}Ki`,
});

/** The creationTimestamp is the time of the measurement. */
export function measured({ metadata }: KubeObject, { at, windowMillis }: NodeUsage) {
  const { name, namespace, labels } = metadata;
  return {
    apiVersion: METRICS_VERSION,
    metadata: { name, namespace, labels, creationTimestamp: formatTime(at) },
    timestamp: formatTime(at),
    window: formatDuration(windowMillis),
  };
}

export const usageColumns = <T extends KubeObject & { window?: string }>(
  used: (object: T, resource: 'cpu' | 'memory') => string,
): readonly CellColumn<T>[] => [
  nameColumn,
  column('CPU', 'The average number of cores used over the window.', (object) => used(object, 'cpu')),
  column('Memory', 'The working set: the used memory that the kernel cannot easily reclaim.', (object) =>
    used(object, 'memory'),
  ),
  column('Window', 'The interval over which the CPU usage is averaged.', ({ window }) => window ?? ''),
];
