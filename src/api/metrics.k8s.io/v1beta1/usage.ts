/** The parts that NodeMetrics and PodMetrics have in common. Source: metrics.k8s.io/v1beta1, metrics-server (behavior). */
import type { KubeObject } from '../../../machinery/meta.ts';
import { formatQuantity } from '../../../machinery/quantity.ts';
import { formatDuration, formatTime } from '../../../machinery/time.ts';
import type { NodeUsage, ResourceUsage } from '../../../ports/node-reports.ts';
import { column, nameColumn } from '../../table.ts';

export const METRICS = { group: 'metrics.k8s.io', version: 'v1beta1' };

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
    apiVersion: `${METRICS.group}/${METRICS.version}`,
    metadata: { name, namespace, labels, creationTimestamp: formatTime(at) },
    timestamp: formatTime(at),
    window: formatDuration(windowMillis),
  };
}

export const usageColumns = [
  nameColumn,
  column('CPU', 'The average number of cores used over the window.'),
  column('Memory', 'The working set: the used memory that the kernel cannot easily reclaim.'),
  column('Window', 'The interval over which the CPU usage is averaged.'),
];
