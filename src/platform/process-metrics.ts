/**
 * Names that begin with `process` are the standard names of Prometheus client libraries. The other names are those of prom-client, except
 * for the active and idle seconds of the event loop, which prom-client does not report.
 */
import { readdir } from 'node:fs/promises';
import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks';
import { family, type MetricFamily, type Metrics, single } from './metrics.ts';
import { onAbort } from './on-abort.ts';

const GC_BUCKETS_SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1];
const GC_KINDS: Readonly<Record<number, string>> = {
  [constants.NODE_PERFORMANCE_GC_MAJOR]: 'major',
  [constants.NODE_PERFORMANCE_GC_MINOR]: 'minor',
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental',
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weakcb',
};

/** Observes garbage collections until `signal` aborts. */
export function addProcessMetrics(metrics: Metrics, signal: AbortSignal): void {
  const collections = metrics.histogram(
    'nodejs_gc_duration_seconds',
    'How long garbage collections took, by their kind.',
    ['kind'],
    GC_BUCKETS_SECONDS,
  );
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { duration, detail } = entry as PerformanceEntry & { detail: { kind: number } };
      const { kind } = detail;
      collections.observe(duration / 1000, GC_KINDS[kind] ?? 'other');
    }
  });
  observer.observe({ entryTypes: ['gc'] });
  onAbort(signal, () => observer.disconnect());
  metrics.source(processFamilies);
}

async function processFamilies(): Promise<MetricFamily[]> {
  const asked = performance.now();
  await new Promise((resolve) => setImmediate(resolve));
  const lagSeconds = (performance.now() - asked) / 1000;
  const { user, system } = process.cpuUsage();
  const { rss, heapTotal, heapUsed, external } = process.memoryUsage();
  const { active, idle } = performance.eventLoopUtilization();
  const files = await readdir('/proc/self/fd');
  return [
    family('counter', 'process_cpu_seconds_total', 'CPU time in seconds.', single((user + system) / 1e6)),
    family('gauge', 'process_resident_memory_bytes', 'Resident memory in bytes.', single(rss)),
    family(
      'gauge',
      'process_start_time_seconds',
      'When the process started, in seconds since the epoch.',
      single(performance.timeOrigin / 1000),
    ),
    family('gauge', 'process_open_fds', 'Open file descriptors.', single(files.length)),
    family('gauge', 'nodejs_heap_size_total_bytes', 'The heap in bytes.', single(heapTotal)),
    family('gauge', 'nodejs_heap_size_used_bytes', 'Used heap in bytes.', single(heapUsed)),
    family(
      'gauge',
      'nodejs_external_memory_bytes',
      'Memory of objects outside of the heap, in bytes.',
      single(external),
    ),
    family('gauge', 'nodejs_eventloop_lag_seconds', 'The lag of the event loop, at this reading.', single(lagSeconds)),
    family(
      'counter',
      'nodejs_eventloop_active_seconds_total',
      'How long the event loop was busy; with the idle time, its utilization.',
      single(active / 1000),
    ),
    family('counter', 'nodejs_eventloop_idle_seconds_total', 'How long the event loop was idle.', single(idle / 1000)),
  ];
}
