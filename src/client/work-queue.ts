/**
 * A queue of keys to reconcile: a key is queued at most once, is never processed twice at the same time, and is retried with back-off while
 * it fails. Source: client-go's workqueue (behavior).
 */
import { isApiError, isNamespaceTerminating } from '../machinery/status.ts';
import { family, type MetricFamily, type MetricSample } from '../platform/metrics.ts';
import { onAbort } from '../platform/on-abort.ts';
import type { Log, Timer, Timers } from '../platform/platform.ts';
import { turnClock } from '../platform/work-in-turns.ts';
import { backOffMillis } from './back-off.ts';

const BACKOFF_BASE_MILLIS = 10;
const BACKOFF_MAX_MILLIS = 60_000;
const CONCURRENCY = 16;
/** From this number of failures in a row on, expected errors of a key are logged as warnings instead of debug messages. */
const WARNED_FAILURES = 5;

/** A period in which work must not begin, and which may recur. onEnd() calls `act` at each end of the period. */
export interface Pause {
  isActive(): boolean;
  onEnd(act: () => void): void;
}

export interface WorkQueueOptions {
  name: string;
  /** Reconciles the key; if it rejects, the key is retried later. */
  process(key: string): Promise<void>;
  log: Log;
  timers: Timers;
  /** Stops the queue: keys that are being processed are completed, and no further key is processed. */
  signal: AbortSignal;
  /** While the pause is active, the queue does not begin to process keys. */
  pause?: Pause | undefined;
}

export interface WorkQueue {
  /** Queues the key. A key that is being processed is processed once more afterwards, and a key in back-off no longer waits. */
  add(key: string): void;
  /** Resolves when no key is queued or being processed; keys in back-off do not count. */
  idle(): Promise<void>;
}

const figures = new Set<QueueFigures>();

interface QueueFigures {
  name: string;
  depth(): number;
  active(): number;
  adds: number;
  retries: number;
}

/**
 * Returns the metrics of all work queues of the process. Queues with the same name share a sample, which is the sum of their values. Except
 * for workqueue_active, the names are those of Kubernetes v1.33.
 */
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
      'Keys waiting to be processed.',
      samples(({ depth }) => depth()),
    ),
    family(
      'gauge',
      'workqueue_active',
      'Keys being processed.',
      samples(({ active }) => active()),
    ),
    family(
      'counter',
      'workqueue_adds_total',
      'Keys added to the queue.',
      samples(({ adds }) => adds),
    ),
    family(
      'counter',
      'workqueue_retries_total',
      'Failures after which a key is retried.',
      samples(({ retries }) => retries),
    ),
  ];
}

export function createWorkQueue(options: WorkQueueOptions): WorkQueue {
  const { signal, pause } = options;
  const waiting = new Set<string>();
  const active = new Set<string>();
  const isTurnOver = turnClock();
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
      if (resting || pause?.isActive() === true || active.size >= CONCURRENCY) return;
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
  /** Continues in the next turn of the event loop, because many keys whose processing needs no I/O would otherwise block other work. */
  const rest = (): void => {
    resting = true;
    setImmediate(() => {
      resting = false;
      pump('in turns');
      idlers.notify();
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
      idlers.notify();
    }
  };
  pause?.onEnd(() => pump('in turns'));
  return { add, idle: idlers.wait };
}

const figuresOf = (name: string, waiting: Set<string>, active: Set<string>): QueueFigures => ({
  name,
  depth: () => waiting.size,
  active: () => active.size,
  adds: 0,
  retries: 0,
});

function createIdlers(isIdle: () => boolean) {
  let idlers: (() => void)[] = [];
  return {
    notify(): void {
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

/** Expected errors: another client has changed the object during the reconciliation, or the namespace is being deleted. */
const isExpected = (error: Error): boolean => isApiError(error, 'Conflict') || isNamespaceTerminating(error);

function createRetries({ name, log, timers }: WorkQueueOptions, add: (key: string) => void) {
  const failures = new Map<string, number>();
  const timersByKey = new Map<string, Timer>();
  return {
    /** Counts and logs the failure, and starts the back-off timer if `retry` is true. A key that is queued again needs no timer. */
    failed(key: string, error: Error, retry: boolean): void {
      const count = (failures.get(key) ?? 0) + 1;
      failures.set(key, count);
      const level = count < WARNED_FAILURES && isExpected(error) ? 'debug' : 'warn';
      log[level]('work queue: a key failed', { queue: name, key, failures: count, error: error.message });
      if (!retry) return;
      const time = timers.now() + backOffMillis(count, BACKOFF_BASE_MILLIS, BACKOFF_MAX_MILLIS);
      timersByKey.set(
        key,
        timers.at(time, () => add(key)),
      );
    },
    forget: (key: string): void => void failures.delete(key),
    cancel(key: string): void {
      timersByKey.get(key)?.cancel();
      timersByKey.delete(key);
    },
    end(): void {
      for (const timer of timersByKey.values()) timer.cancel();
      timersByKey.clear();
    },
  };
}
