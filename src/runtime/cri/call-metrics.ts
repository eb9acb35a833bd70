/**
 * Measures the unary calls to the runtime, but not its streams.
 * Source of the names: Kubernetes v1.33 metrics reference, kubelet_runtime_operations_*.
 */
import type { Metrics } from '../../platform/metrics.ts';
import type { CallListener } from './connection.ts';

const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60];

export function callMetrics(metrics: Metrics): CallListener {
  const total = metrics.counter('kubelet_runtime_operations_total', 'Calls to the container runtime.', [
    'operation_type',
  ]);
  const errors = metrics.counter(
    'kubelet_runtime_operations_errors_total',
    'Calls to the container runtime that failed.',
    ['operation_type'],
  );
  const durations = metrics.histogram(
    'kubelet_runtime_operations_duration_seconds',
    'Duration of calls to the container runtime in seconds.',
    ['operation_type'],
    BUCKETS_SECONDS,
  );
  return (method, seconds, failed) => {
    const operation = operationType(method);
    total.add(1, operation);
    if (failed) errors.add(1, operation);
    durations.observe(seconds, operation);
  };
}

const names = new Map<string, string>();

/**
 * Returns upstream's name for a method of CRI, such as run_podsandbox for runtime.v1.RuntimeService/RunPodSandbox. Other services get names
 * of the same form.
 */
export function operationType(method: string): string {
  let name = names.get(method);
  if (name === undefined) {
    const call = method.slice(method.indexOf('/') + 1).replace('PodSandbox', 'Podsandbox');
    name = call.replace(/(?<=[a-z])(?=[A-Z])/g, '_').toLowerCase();
    names.set(method, name);
  }
  return name;
}
