import { expect, test } from 'vitest';
import { createMetrics } from './metrics.ts';
import { addProcessMetrics } from './process-metrics.ts';

test('the metrics of this process have plausible values', async () => {
  const metrics = createMetrics();
  const end = new AbortController();
  addProcessMetrics(metrics, end.signal);
  const families = new Map((await metrics.families()).map((family) => [family.name, family.samples[0]?.value ?? 0]));
  end.abort();
  const value = (name: string): number => families.get(name) ?? Number.NaN;
  expect(value('process_resident_memory_bytes')).toBeGreaterThan(value('nodejs_heap_size_used_bytes'));
  expect(value('nodejs_heap_size_total_bytes')).toBeGreaterThanOrEqual(value('nodejs_heap_size_used_bytes'));
  expect(value('process_cpu_seconds_total')).toBeGreaterThan(0.01);
  expect(value('process_open_fds')).toBeGreaterThan(2);
  expect(Math.abs(value('process_start_time_seconds') - (Date.now() / 1000 - process.uptime()))).toBeLessThan(60);
  expect(value('nodejs_eventloop_lag_seconds')).toBeGreaterThan(0);
  expect(value('nodejs_eventloop_lag_seconds')).toBeLessThan(30);
});
