import { expect, test } from 'vitest';
import { createMetrics, metricsText } from '../../platform/metrics.ts';
import { callMetrics, operationType } from './call-metrics.ts';

test.each([
  ['runtime.v1.RuntimeService/RunPodSandbox', 'run_podsandbox'],
  ['runtime.v1.RuntimeService/PodSandboxStatus', 'podsandbox_status'],
  ['runtime.v1.RuntimeService/ListContainerStats', 'list_container_stats'],
  ['runtime.v1.RuntimeService/Version', 'version'],
  ['runtime.v1.ImageService/PullImage', 'pull_image'],
])('the operation type of %s is %s', (method, operation) => expect(operationType(method)).toBe(operation));

test('callMetrics() counts all calls, and failed calls separately', async () => {
  const metrics = createMetrics();
  const onCall = callMetrics(metrics);
  onCall('runtime.v1.ImageService/PullImage', 0.3, false);
  onCall('runtime.v1.ImageService/PullImage', 0.4, true);
  const text = metricsText(await metrics.families());
  expect(text).toContain('kubelet_runtime_operations_total{operation_type="pull_image"} 2\n');
  expect(text).toContain('kubelet_runtime_operations_errors_total{operation_type="pull_image"} 1\n');
  expect(text).toContain('kubelet_runtime_operations_duration_seconds_sum{operation_type="pull_image"} 0.7\n');
});
