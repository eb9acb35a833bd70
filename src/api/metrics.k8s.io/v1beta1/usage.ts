/** The parts that NodeMetrics and PodMetrics have in common. Source: metrics.k8s.io/v1beta1, metrics-server (behavior). */
import type { KubeObject } from '../../../machinery/meta.ts';
import { formatQuantity } from '../../../machinery/quantity.ts';
import { formatDuration, formatTime } from '../../../machinery/time.ts';
import type { NodeUsage, ResourceUsage } from '../../../ports/node-reports.ts';
import { type CellColumn, column, nameColumn } from '../../table.ts';

export const METRICS_VERSION = 'metrics.k8s.io/v1beta1';

/** Formats the usage as quantities: the cpu rounded to nanocores, the memory rounded down to KiB. */
export const usageQuantities = ({ cpuNanoCores, memoryWorkingSetBytes }: ResourceUsage): Record<string, string> => ({
  cpu: formatQuantity({ nano: BigInt(Math.round(cpuNanoCores)), format: 'DecimalSI' }),
  memory: `${Math.floor(memoryWorkingSetBytes / 1024)}Ki`,
});

/**
 * The fields that all metrics objects have. The metadata contains the name, namespace and labels of the measured
 * object, and the time of the measurement as creationTimestamp.
 */
export function measured({ metadata }: KubeObject, { at, windowMillis }: NodeUsage) {
  const { name, namespace, labels } = metadata;
  return {
    apiVersion: METRICS_VERSION,
    metadata: { name, namespace, labels, creationTimestamp: formatTime(at) },
    timestamp: formatTime(at),
    window: formatDuration(windowMillis),
  };
}

/** Returns the columns of a kind. `used` returns the quantity of a resource. */
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
