import { expect, it, test } from 'vitest';
import { DEFAULT_EVICTION, parseEviction } from '../eviction/thresholds.ts';
import { addAmounts, NOTHING, parseReserved, podAmounts } from './allocatable.ts';

const MIB = 2 ** 20;
const capacity = { cpuMilli: 2000, memoryBytes: 1000 * MIB, diskBytes: 10_000, pids: 4000 };

test("parseReserved parses reserved resources in the kubelet's notation", () => {
  expect(parseReserved('--kube-reserved', 'cpu=100m, memory=256Mi,ephemeral-storage=1Ki,pid=100')).toEqual({
    cpuMilli: 100,
    memoryBytes: 256 * MIB,
    diskBytes: 1024,
    pids: 100,
  });
  expect(parseReserved('--kube-reserved', '')).toEqual(NOTHING);
  expect(parseReserved('--kube-reserved', 'cpu=0')).toEqual(NOTHING);
});

test.each([
  ['gpu=1', '--kube-reserved: "gpu=1" is not RESOURCE=AMOUNT'],
  ['cpu', '--kube-reserved: "cpu" is not RESOURCE=AMOUNT'],
  ['memory=-1Mi', '--kube-reserved: "memory=-1Mi" is not RESOURCE=AMOUNT'],
  ['cpu=1,cpu=2', '--kube-reserved: cpu is given twice'],
])('parseReserved refuses "%s"', (text, message) => {
  expect(() => parseReserved('--kube-reserved', text)).toThrow(message);
});

it('podAmounts subtracts reserved resources from the limits, and eviction thresholds only from allocatable', () => {
  const { thresholds } = parseEviction(DEFAULT_EVICTION);
  const reserved = { cpuMilli: 500, memoryBytes: 200 * MIB, diskBytes: 2000, pids: 100 };
  expect(podAmounts(capacity, reserved, thresholds)).toEqual({
    limits: { cpuMilli: 1500, memoryBytes: 800 * MIB, diskBytes: 8000, pids: 3900 },
    allocatable: { cpuMilli: 1500, memoryBytes: 700 * MIB, diskBytes: 7000, pids: 3900 },
  });
});

it('podAmounts subtracts only the hard thresholds that are set', () => {
  const { thresholds } = parseEviction({
    ...DEFAULT_EVICTION,
    hard: 'memory.available<10%',
    soft: 'nodefs.available<50%',
    softGracePeriod: 'nodefs.available=1m',
  });
  expect(podAmounts(capacity, NOTHING, thresholds).allocatable).toEqual({ ...capacity, memoryBytes: 900 * MIB });
});

it('addAmounts adds the amounts of each resource', () => {
  const more = { cpuMilli: 1, memoryBytes: 2, diskBytes: 3, pids: 4 };
  expect(addAmounts(capacity, more)).toEqual({
    cpuMilli: 2001,
    memoryBytes: 1000 * MIB + 2,
    diskBytes: 10_003,
    pids: 4004,
  });
});

it('podAmounts refuses to reserve more than the capacity of the machine', () => {
  expect(podAmounts(capacity, capacity, []).limits).toEqual(NOTHING);
  expect(() => podAmounts(capacity, { ...NOTHING, pids: 5000 }, [])).toThrow(
    '--kube-reserved and --system-reserved: together they reserve 5000 of pid, but the machine has only 4000',
  );
  expect(() => podAmounts(capacity, { ...NOTHING, cpuMilli: 64_500 }, [])).toThrow(
    'together they reserve 64.5 of cpu, but the machine has only 2',
  );
  expect(() => podAmounts(capacity, { ...NOTHING, memoryBytes: 3000 * MIB }, [])).toThrow(
    'together they reserve 2.9 GiB of memory, but the machine has only 1000 MiB',
  );
  expect(() => podAmounts(capacity, { ...NOTHING, memoryBytes: 1000 * MIB + 1 }, [])).toThrow(
    'together they reserve 1048576001 of memory, but the machine has only 1048576000',
  );
});
