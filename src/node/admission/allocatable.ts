/** The functions are pure. Source: "Reserve Compute Resources for System Daemons" of the v1.33 documentation; pkg/kubelet/cm of v1.33. */
import { binarySize } from '../../machinery/binary-size.ts';
import { parseQuantity, type Quantity, quantityMilli, quantityValue } from '../../machinery/quantity.ts';
import { amountOf, type Signal, type Threshold } from '../eviction/thresholds.ts';

/** CPU in thousandths of a core, memory and disk in bytes, and a number of processes and threads. */
export interface Amounts {
  cpuMilli: number;
  memoryBytes: number;
  diskBytes: number;
  pids: number;
}

export type Reserved = Amounts;

export const NOTHING: Amounts = { cpuMilli: 0, memoryBytes: 0, diskBytes: 0, pids: 0 };

interface Resource {
  key: keyof Amounts;
  amount(quantity: Quantity): bigint;
  /** Formats the number of an Amounts for users. */
  text(amount: number): string;
}

const RESOURCES: Readonly<Record<string, Resource>> = {
  cpu: { key: 'cpuMilli', amount: quantityMilli, text: (milli) => String(milli / 1000) },
  memory: { key: 'memoryBytes', amount: quantityValue, text: binarySize },
  'ephemeral-storage': { key: 'diskBytes', amount: quantityValue, text: binarySize },
  pid: { key: 'pids', amount: quantityValue, text: String },
};

/**
 * Parses a text such as `cpu=100m,memory=256Mi,ephemeral-storage=1Gi,pid=100`. Throws an Error that contains `option` and the invalid part
 * or the repeated resource.
 */
export function parseReserved(option: string, text: string): Reserved {
  const reserved = { ...NOTHING };
  const seen = new Set<string>();
  for (const part of text.split(',').filter((each) => each.trim() !== '')) {
    const [name = '', value = ''] = part.split('=').map((each) => each.trim());
    const resource = RESOURCES[name];
    const quantity = parseQuantity(value);
    if (resource === undefined || quantity === undefined || quantity.nano < 0n)
      throw new Error(
        `${option}: ${JSON.stringify(part)} is not RESOURCE=AMOUNT such as memory=256Mi (resources: ${Object.keys(RESOURCES).join(', ')})`,
      );
    if (seen.has(name)) throw new Error(`${option}: ${name} is given twice`);
    seen.add(name);
    const { key, amount } = resource;
    reserved[key] = Number(amount(quantity));
  }
  return reserved;
}

export const addAmounts = (a: Amounts, b: Amounts): Amounts => ({
  cpuMilli: a.cpuMilli + b.cpuMilli,
  memoryBytes: a.memoryBytes + b.memoryBytes,
  diskBytes: a.diskBytes + b.diskBytes,
  pids: a.pids + b.pids,
});

const subtractAmounts = (a: Amounts, b: Amounts): Amounts => ({
  cpuMilli: Math.max(0, a.cpuMilli - b.cpuMilli),
  memoryBytes: Math.max(0, a.memoryBytes - b.memoryBytes),
  diskBytes: Math.max(0, a.diskBytes - b.diskBytes),
  pids: Math.max(0, a.pids - b.pids),
});

export interface PodAmounts {
  /** The maximum that all Pods together may use. It determines the CPU shares and the limits of their common control group. */
  limits: Amounts;
  /**
   * The total that Pods can request: the limits minus the hard eviction thresholds of memory and disk space. Pods that use only what they
   * requested do not cause the node to reach these thresholds.
   */
  allocatable: Amounts;
}

/** Throws an Error if `reserved` exceeds `capacity` in any resource. */
export function podAmounts(capacity: Amounts, reserved: Reserved, thresholds: readonly Threshold[]): PodAmounts {
  const kept = (signal: Signal, of: number): number => {
    const threshold = thresholds.find((each) => each.hard && each.signal === signal);
    return threshold === undefined ? 0 : amountOf(threshold.value, of);
  };
  for (const [name, { key, text: rounded }] of Object.entries(RESOURCES)) {
    const text = rounded(reserved[key]) === rounded(capacity[key]) ? String : rounded;
    if (reserved[key] > capacity[key])
      throw new Error(
        `--kube-reserved and --system-reserved: together they reserve ${text(reserved[key])} of ${name}, but the machine has only ${text(capacity[key])}`,
      );
  }
  const limits = subtractAmounts(capacity, reserved);
  const evictedAt: Amounts = {
    ...NOTHING,
    memoryBytes: kept('memory.available', capacity.memoryBytes),
    diskBytes: kept('nodefs.available', capacity.diskBytes),
  };
  return { limits, allocatable: subtractAmounts(limits, evictedAt) };
}
