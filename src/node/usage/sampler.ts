/**
 * Computes the CPU usage of the node and its containers as the growth of counters between two samples.
 *
 * Samples are taken only on request. If no earlier sample can be reused, a request waits for a second sample, one second after the first.
 * Source: the behavior of metrics-server, except that metrics-server samples every 15 s even without requests.
 *
 * Invariants:
 * - The sampler takes at most one sample per second, however many requests there are. Concurrent requests share their samples.
 * - Samples that are older than a minute are dropped at the next request, and at most about two dozen are kept.
 */
import type { Millis } from '../../machinery/time.ts';
import type { Timers } from '../../platform/platform.ts';
import type { ContainerUsage } from '../../runtime/runtime.ts';
import type { MachineUsage } from './machine-usage.ts';

export interface Sample {
  at: Millis;
  machine: MachineUsage;
  containers: readonly ContainerUsage[];
}

export interface SamplePair {
  first: Sample;
  last: Sample;
}

/** The shortest window. If there are two samples or more and the newest is younger than this, no further sample is taken. */
const FRESH_MILLIS = 1_000;
/** The desired window, which is used if there are samples that are old enough. */
const WINDOW_MILLIS = 15_000;
const KEEP_MILLIS = 60_000;
/** If two samples are closer than this, a sample between them is dropped. */
const SPACING_MILLIS = 5_000;

export interface Sampler {
  /** Takes samples if necessary. Rejects if `look` fails or on abort. */
  pair(): Promise<SamplePair>;
}

export function createSampler(options: {
  look(signal: AbortSignal): Promise<Sample>;
  timers: Timers;
  signal: AbortSignal;
}): Sampler {
  const { timers, signal } = options;
  let kept: Sample[] = [];
  let running: Promise<SamplePair> | undefined;

  const look = async (): Promise<Sample> => {
    const sample = await options.look(signal);
    kept = thinned([...kept, sample]);
    return sample;
  };
  const measure = async (): Promise<SamplePair> => {
    const now = timers.now();
    // Samples with a time in the future are unusable. They exist if the clock was set back.
    kept = kept.filter(({ at }) => at <= now && now - at <= KEEP_MILLIS);
    const [oldest] = kept;
    const newest = kept.at(-1);
    if (oldest !== undefined && newest !== undefined && oldest !== newest && now - newest.at < FRESH_MILLIS) {
      return { first: firstOf(kept, newest), last: newest };
    }
    const earliest = oldest ?? (await look());
    await until(earliest.at + FRESH_MILLIS, timers, signal);
    const last = await look();
    return { first: firstOf(kept, last), last };
  };
  return {
    pair() {
      running ??= measure().finally(() => {
        running = undefined;
      });
      return running;
    },
  };
}

/**
 * Returns the newest of the samples that are at least WINDOW_MILLIS older than `last`. If there is none, returns the oldest sample, which
 * is `last` if there is no other.
 */
export function firstOf(samples: readonly Sample[], last: Sample): Sample {
  const before = samples.filter((sample) => sample !== last);
  return before.findLast(({ at }) => last.at - at >= WINDOW_MILLIS) ?? before[0] ?? last;
}

/** Drops the second to last sample if its neighbors are less than SPACING_MILLIS apart. */
export function thinned(samples: Sample[]): Sample[] {
  const [before, middle, last] = samples.slice(-3);
  if (before === undefined || middle === undefined || last === undefined) return samples;
  return last.at - before.at < SPACING_MILLIS ? [...samples.slice(0, -2), last] : samples;
}

function until(time: Millis, timers: Timers, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const abort = (): void => {
      timer.cancel();
      reject(signal.reason);
    };
    const timer = timers.at(time, () => {
      signal.removeEventListener('abort', abort);
      resolve();
    });
    signal.addEventListener('abort', abort, { once: true });
  });
}

/**
 * Returns the CPU usage of a container in nanocores. For a container that is not in the first sample, the window begins at the container's
 * start. Returns undefined if this start is unknown or the window has no duration.
 */
export function containerRate(
  { first }: SamplePair,
  used: ContainerUsage,
  startedAt: Millis | undefined,
): number | undefined {
  const before = first.containers.find(({ id }) => id === used.id) ?? sinceStart(startedAt);
  return before === undefined ? undefined : rate(before, used);
}

const sinceStart = (startedAt: Millis | undefined): Counter | undefined =>
  startedAt === undefined ? undefined : { at: startedAt, cpuNanoSeconds: 0 };

export const machineRate = ({ first, last }: SamplePair): number => rate(first.machine, last.machine) ?? 0;

interface Counter {
  at: Millis;
  cpuNanoSeconds: number;
}

function rate(before: Counter, after: Counter): number | undefined {
  const seconds = (after.at - before.at) / 1000;
  return seconds > 0 ? Math.max(0, (after.cpuNanoSeconds - before.cpuNanoSeconds) / seconds) : undefined;
}
