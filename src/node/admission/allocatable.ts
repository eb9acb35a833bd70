/**
 * What of the machine is kept from Pods, for the system and for the node's own parts. Pure.
 * Source: "Reserve Compute Resources for System Daemons" of the v1.33 documentation; pkg/kubelet/cm of v1.33.
 */
import { parseQuantity, type Quantity, quantityMilli, quantityValue } from '../../machinery/quantity.ts';
import { amountOf, type Signal, type Threshold } from '../eviction/thresholds.ts';

/** cpu in thousandths, memory and disk in bytes. */
export interface Amounts {
  cpuMilli: number;
  memoryBytes: number;
  diskBytes: number;
  pids: number;
}

export type Reserved = Amounts;

export const NOTHING: Amounts = { cpuMilli: 0, memoryBytes: 0, diskBytes: 0, pids: 0 };

const RESOURCES: Readonly<Record<string, [key: keyof Amounts, amount: (quantity: Quantity) => bigint]>> = {
  cpu: ['cpuMilli', quantityMilli],
  memory: ['memoryBytes', quantityValue],
  'ephemeral-storage': ['diskBytes', quantityValue],
  pid: ['pids', quantityValue],
};

/** cpu=100m,memory=256Mi,ephemeral-storage=1Gi,pid=100. Throws an Error that says what of the option cannot be understood. */
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
    if (seen.has(name)) throw new Error(`${option}: ${name} stands there twice`);
    seen.add(name);
    const [key, amount] = resource;
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

/** Never below nothing. */
const subtractAmounts = (a: Amounts, b: Amounts): Amounts => ({
  cpuMilli: Math.max(0, a.cpuMilli - b.cpuMilli),
  memoryBytes: Math.max(0, a.memoryBytes - b.memoryBytes),
  diskBytes: Math.max(0, a.diskBytes - b.diskBytes),
  pids: Math.max(0, a.pids - b.pids),
});

export interface PodAmounts {
  /** What the Pods together may use at most: of their control group. */
  limits: Amounts;
  /** What they may request: so much less that none is evicted while all use what they requested. */
  allocatable: Amounts;
}

/** Throws an Error where more is reserved than there is. */
export function podAmounts(capacity: Amounts, reserved: Reserved, thresholds: readonly Threshold[]): PodAmounts {
  const kept = (signal: Signal, of: number): number => {
    const threshold = thresholds.find((each) => each.hard && each.signal === signal);
    return threshold === undefined ? 0 : amountOf(threshold.value, of);
  };
  for (const [name, [key]] of Object.entries(RESOURCES))
    if (reserved[key] > capacity[key])
      throw new Error(
        `--kube-reserved and --system-reserved: ${name} ${reserved[key]} is more than the machine's ${capacity[key]}`,
      );
  const limits = subtractAmounts(capacity, reserved);
  const evictedAt: Amounts = {
    ...NOTHING,
    memoryBytes: kept('memory.available', capacity.memoryBytes),
    diskBytes: kept('nodefs.available', capacity.diskBytes),
  };
  return { limits, allocatable: subtractAmounts(limits, evictedAt) };
}
