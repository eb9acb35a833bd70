/**
 * A queue of keys to reconcile: a key waits at most once, is never worked on twice at a time, and comes again after
 * a growing pause while it fails. Source: client-go's workqueue (behaviour).
 */
import { family, type MetricFamily, type MetricSample } from '../platform/metrics.ts';
import type { Log, Timer, Timers } from '../platform/platform.ts';
import { backOffMillis } from './back-off.ts';

const BACKOFF_BASE_MILLIS = 10;
const BACKOFF_MAX_MILLIS = 60_000;
const CONCURRENCY = 16;

export interface WorkQueueOptions {
  name: string;
  /** Rejects to be called again with the key later. */
  process(key: string): Promise<void>;
  log: Log;
  timers: Timers;
  /** Nothing is begun any more once it aborts. */
  signal: AbortSignal;
}

export interface WorkQueue {
  /** Works on the key soon; also if it is being worked on now (then again) or waits after a failure (then at once). */
  add(key: string): void;
  /** Resolves when no key waits or is worked on; those that pause after a failure do not count. */
  idle(): Promise<void>;
}

/** Of the queues of this process that have not ended, for who measures them. */
const figures = new Set<QueueFigures>();

interface QueueFigures {
  name: string;
  depth(): number;
  active(): number;
  adds: number;
  retries: number;
}

/** Names: client-go's workqueue metrics. Queues of one name count together. */
export function workQueueMetrics(): MetricFamily[] {
  const byName = Map.groupBy(figures, ({ name }) => name);
  const samples = (figure: (one: QueueFigures) => number): MetricSample[] =>
    [...byName].map(([name, queues]) => ({
      labels: { name },
      value: queues.reduce((sum, queue) => sum + figure(queue), 0),
    }));
  return [
    family(
      'gauge',
      'workqueue_depth',
      'Keys that wait to be worked on.',
      samples(({ depth }) => depth()),
    ),
    family(
      'gauge',
      'workqueue_active',
      'Keys that are being worked on.',
      samples(({ active }) => active()),
    ),
    family(
      'counter',
      'workqueue_adds_total',
      'Keys that were added.',
      samples(({ adds }) => adds),
    ),
    family(
      'counter',
      'workqueue_retries_total',
      'Failures after which a key comes again.',
      samples(({ retries }) => retries),
    ),
  ];
}

export function createWorkQueue(options: WorkQueueOptions): WorkQueue {
  const { log, timers, signal } = options;
  const waiting = new Set<string>();
  const active = new Set<string>();
  const failures = new Map<string, number>();
  const pauses = new Map<string, Timer>();
  let idlers: (() => void)[] = [];
  const own: QueueFigures = {
    name: options.name,
    depth: () => waiting.size,
    active: () => active.size,
    adds: 0,
    retries: 0,
  };
  if (!signal.aborted) figures.add(own);
  signal.addEventListener('abort', () => {
    figures.delete(own);
    for (const timer of pauses.values()) timer.cancel();
    pauses.clear();
    waiting.clear();
  });

  const add = (key: string): void => {
    if (signal.aborted) return;
    pauses.get(key)?.cancel();
    pauses.delete(key);
    waiting.add(key);
    own.adds += 1;
    pump();
  };
  const pump = (): void => {
    for (const key of waiting) {
      if (active.size >= CONCURRENCY) return;
      if (active.has(key)) continue;
      waiting.delete(key);
      active.add(key);
      void work(key);
    }
  };
  const work = async (key: string): Promise<void> => {
    try {
      await options.process(key);
      failures.delete(key);
    } catch (error) {
      if (!signal.aborted) retryLater(key, error as Error);
    } finally {
      active.delete(key);
      if (!signal.aborted) pump();
      if (isIdle()) {
        for (const idler of idlers) idler();
        idlers = [];
      }
    }
  };
  const retryLater = (key: string, error: Error): void => {
    const count = (failures.get(key) ?? 0) + 1;
    failures.set(key, count);
    own.retries += 1;
    log.warn('work queue: a key failed', { queue: options.name, key, failures: count, error: error.message });
    if (waiting.has(key)) return;
    const time = timers.now() + backOffMillis(count, BACKOFF_BASE_MILLIS, BACKOFF_MAX_MILLIS);
    pauses.set(
      key,
      timers.at(time, () => add(key)),
    );
  };
  const isIdle = (): boolean => active.size === 0 && waiting.size === 0;
  return {
    add,
    idle: () =>
      new Promise((resolve) => {
        if (isIdle()) resolve();
        else idlers.push(resolve);
      }),
  };
}
