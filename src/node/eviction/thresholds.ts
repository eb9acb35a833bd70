/** The functions are pure. Source: "Node-pressure Eviction" of the v1.33 documentation; pkg/kubelet/eviction of v1.33 (behavior). */
import { parseQuantity, quantityValue } from '../../machinery/quantity.ts';
import { type Millis, parseDuration } from '../../machinery/time.ts';

export const SIGNALS = [
  'memory.available',
  'nodefs.available',
  'nodefs.inodesFree',
  'imagefs.available',
  'imagefs.inodesFree',
  'pid.available',
] as const;
export type Signal = (typeof SIGNALS)[number];

/** A number of bytes, inodes or processes (`count`), or a fraction of the capacity from 0 to 1 (`part`). */
export type Amount = { count: number } | { part: number };

export interface Threshold {
  signal: Signal;
  value: Amount;
  /** How long the threshold must be met before Pods are evicted; 0 for hard thresholds. */
  graceSeconds: number;
  hard: boolean;
  /** If this is set, a threshold that is met stays met until this amount is available in addition to `value`. */
  minReclaim?: Amount;
}

export interface Observation {
  available: number;
  capacity: number;
}

/** A signal that cannot be measured on this machine is undefined. */
export type Observations = Readonly<Partial<Record<Signal, Observation>>>;

export type PressureCondition = 'MemoryPressure' | 'DiskPressure' | 'PIDPressure';

export type StarvedResource = 'memory' | 'ephemeral-storage' | 'inodes' | 'pids';

const RESOURCES: Record<Signal, StarvedResource> = {
  'memory.available': 'memory',
  'nodefs.available': 'ephemeral-storage',
  'nodefs.inodesFree': 'inodes',
  'imagefs.available': 'ephemeral-storage',
  'imagefs.inodesFree': 'inodes',
  'pid.available': 'pids',
};

export const resourceOf = ({ signal }: Threshold): StarvedResource => RESOURCES[signal];

export function conditionOf(threshold: Threshold): PressureCondition {
  const resource = resourceOf(threshold);
  return resource === 'memory' ? 'MemoryPressure' : resource === 'pids' ? 'PIDPressure' : 'DiskPressure';
}

export const isOfDisk = (threshold: Threshold): boolean => conditionOf(threshold) === 'DiskPressure';

/** The values of the --eviction-* options, in the kubelet's notation. */
export interface EvictionTexts {
  /** For example memory.available<100Mi,nodefs.available<10%. */
  hard: string;
  soft: string;
  /** For example memory.available=1m30s. */
  softGracePeriod: string;
  /** For example nodefs.available=500Mi. */
  minimumReclaim: string;
  pressureTransitionPeriod: string;
  /** In seconds, for Pods that are evicted for a soft threshold. */
  maxPodGracePeriod: string;
}

export const DEFAULT_EVICTION: EvictionTexts = {
  hard: 'memory.available<100Mi,nodefs.available<10%,nodefs.inodesFree<5%,imagefs.available<15%,imagefs.inodesFree<5%',
  soft: '',
  softGracePeriod: '',
  minimumReclaim: '',
  pressureTransitionPeriod: '5m',
  maxPodGracePeriod: '0',
};

export interface EvictionConfig {
  thresholds: readonly Threshold[];
  /** How long a condition stays set after one of its thresholds was last met. */
  transitionMillis: Millis;
  maxPodGraceSeconds: number;
}

/**
 * Parses the values of the --eviction-* options. Omits thresholds of 0% and 100%; hard thresholds precede soft ones. Throws an Error that
 * names the invalid option.
 */
export function parseEviction(texts: EvictionTexts): EvictionConfig {
  const graces = parsePairs('--eviction-soft-grace-period', texts.softGracePeriod, '=');
  const reclaims = parsePairs('--eviction-minimum-reclaim', texts.minimumReclaim, '=');
  const thresholds: Threshold[] = [];
  for (const hard of [true, false]) {
    const option = hard ? '--eviction-hard' : '--eviction-soft';
    for (const [signal, text] of parsePairs(option, hard ? texts.hard : texts.soft, '<')) {
      if (isOff(text)) continue;
      const grace = graces.get(signal);
      if (!hard && grace === undefined)
        throw new Error(`--eviction-soft: ${signal} needs a grace period in --eviction-soft-grace-period`);
      const reclaim = reclaims.get(signal);
      thresholds.push({
        signal,
        value: parsePositive(option, signal, text),
        graceSeconds: hard || grace === undefined ? 0 : parseSeconds('--eviction-soft-grace-period', grace),
        hard,
        minReclaim: reclaim === undefined ? undefined : parseAmount('--eviction-minimum-reclaim', signal, reclaim),
      });
    }
  }
  // An empty text, which an older lifepod may have recorded, means 0.
  const maxPodGraceSeconds = Number(texts.maxPodGracePeriod);
  if (!Number.isSafeInteger(maxPodGraceSeconds) || maxPodGraceSeconds < 0)
    throw new Error(
      `--eviction-max-pod-grace-period: ${texts.maxPodGracePeriod} is not a whole number of seconds without a unit, such as 30`,
    );
  return {
    thresholds,
    transitionMillis: parseSeconds('--eviction-pressure-transition-period', texts.pressureTransitionPeriod) * 1000,
    maxPodGraceSeconds,
  };
}

function parsePairs(option: string, text: string, between: '<' | '='): Map<Signal, string> {
  const pairs = new Map<Signal, string>();
  for (const part of text.split(',').filter((each) => each.trim() !== '')) {
    const [name = '', value = '', ...rest] = part.split(between).map((each) => each.trim());
    const signal = SIGNALS.find((each) => each === name);
    if (signal === undefined || value === '' || rest.length > 0)
      throw new Error(
        `${option}: ${JSON.stringify(part)} is not SIGNAL${between}VALUE (signals: ${SIGNALS.join(', ')})`,
      );
    if (pairs.has(signal)) throw new Error(`${option}: ${signal} is given twice`);
    pairs.set(signal, value);
  }
  return pairs;
}

/** Source: parseThresholdStatement of pkg/kubelet/eviction, v1.33. */
const isOff = (text: string): boolean => text === '0%' || text === '100%';

function parsePositive(option: string, signal: Signal, text: string): Amount {
  const amount = parseAmount(option, signal, text);
  if ('count' in amount && amount.count === 0)
    throw new Error(`${option}: ${JSON.stringify(text)} of ${signal} is never met: to switch it off, give 0%`);
  return amount;
}

function parseAmount(option: string, signal: Signal, text: string): Amount {
  const percent = /^(\d+(?:\.\d+)?)%$/.exec(text)?.[1];
  if (percent !== undefined && Number(percent) <= 100) return { part: Number(percent) / 100 };
  const quantity = percent === undefined ? parseQuantity(text) : undefined;
  if (quantity === undefined || quantity.nano < 0n)
    throw new Error(
      `${option}: ${JSON.stringify(text)} of ${signal} is neither an amount such as 100Mi nor a percentage such as 10%`,
    );
  return { count: Number(quantityValue(quantity)) };
}

/**
 * Parses a non-negative Go duration, such as 90s, 1m30s, 1.5h, 500ms or 0. Throws an Error that names the option if the text is not such a
 * duration.
 */
export function parseSeconds(option: string, text: string): number {
  const millis = parseDuration(text);
  if (millis === undefined || millis < 0)
    throw new Error(`${option}: ${JSON.stringify(text)} is not a duration such as 30s, 1m30s or 5m`);
  return millis / 1000;
}

export const amountOf = (amount: Amount, capacity: number): number =>
  'count' in amount ? amount.count : Math.floor(amount.part * capacity);

/** `withReclaim`: the minimum reclaim must be available as well. A signal without an observation meets no threshold. */
export function isMet(threshold: Threshold, observations: Observations, withReclaim: boolean): boolean {
  const seen = observations[threshold.signal];
  if (seen === undefined) return false;
  const reclaim = withReclaim && threshold.minReclaim !== undefined ? amountOf(threshold.minReclaim, seen.capacity) : 0;
  return seen.available < amountOf(threshold.value, seen.capacity) + reclaim;
}

export interface PressureState {
  met: readonly Threshold[];
  /** Since when each threshold in `met` has been met without interruption. */
  since: ReadonlyMap<Threshold, Millis>;
  /** When a threshold of the condition was last met. */
  seenAt: ReadonlyMap<PressureCondition, Millis>;
}

export const noPressure: PressureState = { met: [], since: new Map(), seenAt: new Map() };

export interface Pressure {
  state: PressureState;
  conditions: ReadonlySet<PressureCondition>;
  /** The thresholds that have been met for their grace period. The thresholds for memory come first. */
  due: readonly Threshold[];
  /** When the next threshold becomes due or a condition ends, if the observations stay the same. Absent if neither will happen. */
  changesAt?: Millis;
}

/**
 * A threshold that was met stays met until its minimum reclaim is available as well. A condition stays set until the transition period has
 * passed since one of its thresholds was last met.
 */
export function nextPressure(
  before: PressureState,
  { thresholds, transitionMillis }: EvictionConfig,
  observations: Observations,
  now: Millis,
): Pressure {
  const met = thresholds.filter((each) => isMet(each, observations, before.met.includes(each)));
  const since = new Map(met.map((each) => [each, before.since.get(each) ?? now]));
  const seenAt = new Map(before.seenAt);
  for (const each of met) seenAt.set(conditionOf(each), now);
  const conditions = [...seenAt].filter(([, at]) => at === now || now - at < transitionMillis).map(([name]) => name);
  const dueAt = (each: Threshold): Millis => (since.get(each) ?? now) + each.graceSeconds * 1000;
  const due = met.filter((each) => dueAt(each) <= now);
  const ends = [...seenAt].filter(([, at]) => at !== now).map(([, at]) => at + transitionMillis);
  const changes = [...met.map(dueAt), ...ends].filter((at) => at > now);
  return {
    state: { met, since, seenAt },
    conditions: new Set(conditions),
    changesAt: changes.length === 0 ? undefined : Math.min(...changes),
    due: [...due].sort((a, b) => Number(resourceOf(b) === 'memory') - Number(resourceOf(a) === 'memory')),
  };
}
