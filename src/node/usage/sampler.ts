/**
 * How much CPU the node and its containers use: a rate, so two looks at counters that only grow.
 *
 * Nothing is looked at while nobody asks. Who asks again finds the looks of before; who asks first waits a second for the second
 * look. Source: metrics-server looks every 15 s (behaviour), whether somebody asks or not.
 *
 * Invariants:
 *  1. At most a look a second, however many ask; those who ask meanwhile share it.
 *  2. Looks are forgotten after a minute, and at most some dozen are kept.
 */
import type { Millis } from '../../machinery/time.ts';
import type { Timers } from '../../platform/platform.ts';
import type { ContainerUsage } from '../../runtime/runtime.ts';
import type { MachineUsage } from './machine-usage.ts';

/** One look. */
export interface Sample {
  at: Millis;
  machine: MachineUsage;
  containers: readonly ContainerUsage[];
}

/** The looks at both ends of a window. */
export interface SamplePair {
  first: Sample;
  last: Sample;
}

/** The shortest window; a look younger than that is new enough. */
const FRESH_MILLIS = 1_000;
/** The window that is aimed at. */
const WINDOW_MILLIS = 15_000;
const KEEP_MILLIS = 60_000;
/** Looks nearer to each other than this are not all kept. */
const SPACING_MILLIS = 5_000;

export interface Sampler {
  /** Rejects where the runtime does not answer. */
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
    // After the clock was set back, what seems to lie ahead says nothing.
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

/** The newest look that is a whole window before the last one, or the oldest that there is. */
export function firstOf(samples: readonly Sample[], last: Sample): Sample {
  const before = samples.filter((sample) => sample !== last);
  return before.findLast(({ at }) => last.at - at >= WINDOW_MILLIS) ?? before[0] ?? last;
}

/** Without the look before the last one where its neighbours are near. */
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
 * CPU time in a second, in nanoseconds; a container that was not there at the first look counts from its start, where that
 * is known. undefined: there is no time to divide by.
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
