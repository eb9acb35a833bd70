/**
 * A queue of keys to reconcile: a key waits at most once, is never worked on twice at a time, and comes again after
 * a growing pause while it fails. Source: client-go's workqueue (behaviour).
 */
import { family, type MetricFamily, type MetricSample } from '../platform/metrics.ts';
import { onAbort } from '../platform/on-abort.ts';
import type { Log, Timer, Timers } from '../platform/platform.ts';
import { turnClock } from '../platform/work-in-turns.ts';
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
  const { signal } = options;
  const waiting = new Set<string>();
  const active = new Set<string>();
  const isTurnOver = turnClock();
  /** Until the next turn of the event loop. */
  let resting = false;
  const idlers = createIdlers(() => active.size === 0 && waiting.size === 0);
  const own = figuresOf(options.name, waiting, active);
  if (!signal.aborted) figures.add(own);
  const retries = createRetries(options, (key) => add(key));
  onAbort(signal, () => {
    figures.delete(own);
    retries.end();
    waiting.clear();
  });

  const add = (key: string): void => {
    if (signal.aborted) return;
    retries.cancel(key);
    waiting.add(key);
    own.adds += 1;
    pump('at once');
  };
  const pump = (when: 'at once' | 'in turns'): void => {
    for (const key of waiting) {
      if (resting || active.size >= CONCURRENCY) return;
      if (active.has(key)) continue;
      if (isTurnOver() && when === 'in turns') {
        rest();
        return;
      }
      waiting.delete(key);
      active.add(key);
      void work(key);
    }
  };
  /** Where the work on no key waits for I/O, all of it would be done in one turn: others have theirs in between. */
  const rest = (): void => {
    resting = true;
    setImmediate(() => {
      resting = false;
      pump('in turns');
      idlers.tell();
    });
  };
  const work = async (key: string): Promise<void> => {
    try {
      await options.process(key);
      retries.forget(key);
    } catch (error) {
      if (!signal.aborted) {
        own.retries += 1;
        retries.failed(key, error as Error, !waiting.has(key));
      }
    } finally {
      active.delete(key);
      if (!signal.aborted) pump('in turns');
      idlers.tell();
    }
  };
  return { add, idle: idlers.wait };
}

const figuresOf = (name: string, waiting: Set<string>, active: Set<string>): QueueFigures => ({
  name,
  depth: () => waiting.size,
  active: () => active.size,
  adds: 0,
  retries: 0,
});

/** Those that wait until the queue is idle. */
function createIdlers(isIdle: () => boolean) {
  let idlers: (() => void)[] = [];
  return {
    tell(): void {
      if (!isIdle()) return;
      for (const idler of idlers) idler();
      idlers = [];
    },
    wait: (): Promise<void> =>
      new Promise((resolve) => {
        if (isIdle()) resolve();
        else idlers.push(resolve);
      }),
  };
}

/** The keys that failed, and the pauses after which they come again. */
function createRetries({ name, log, timers }: WorkQueueOptions, add: (key: string) => void) {
  const failures = new Map<string, number>();
  const pauses = new Map<string, Timer>();
  return {
    /** `comesAgain`: after a pause, as it does not wait already. */
    failed(key: string, error: Error, comesAgain: boolean): void {
      const count = (failures.get(key) ?? 0) + 1;
      failures.set(key, count);
      log.warn('work queue: a key failed', { queue: name, key, failures: count, error: error.message });
      if (!comesAgain) return;
      const time = timers.now() + backOffMillis(count, BACKOFF_BASE_MILLIS, BACKOFF_MAX_MILLIS);
      pauses.set(
        key,
        timers.at(time, () => add(key)),
      );
    },
    /** It has succeeded. */
    forget: (key: string): void => void failures.delete(key),
    /** It does not pause any more. */
    cancel(key: string): void {
      pauses.get(key)?.cancel();
      pauses.delete(key);
    },
    end(): void {
      for (const timer of pauses.values()) timer.cancel();
      pauses.clear();
    },
  };
}
