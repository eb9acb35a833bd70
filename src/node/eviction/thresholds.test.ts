import { describe, expect, it, test } from 'vitest';
import {
  DEFAULT_EVICTION,
  type EvictionTexts,
  nextPressure,
  noPressure,
  type Observations,
  parseEviction,
  parseSeconds,
} from './thresholds.ts';

const config = (texts: Partial<EvictionTexts>) => parseEviction({ ...DEFAULT_EVICTION, hard: '', ...texts });
const memory = (available: number): Observations => ({ 'memory.available': { available, capacity: 1000 } });
const signals = (thresholds: readonly { signal: string }[]): string[] => thresholds.map(({ signal }) => signal);

describe('parseEviction', () => {
  it("parseEviction parses the options in the kubelet's notation", () => {
    const read = config({
      hard: 'memory.available<100Mi,nodefs.available<10%',
      soft: 'imagefs.inodesFree<7',
      softGracePeriod: 'imagefs.inodesFree=1m30s',
      minimumReclaim: 'nodefs.available=500Mi',
      maxPodGracePeriod: '20',
    });
    expect(read).toEqual({
      thresholds: [
        { signal: 'memory.available', value: { count: 104857600 }, graceSeconds: 0, hard: true },
        {
          signal: 'nodefs.available',
          value: { part: 0.1 },
          graceSeconds: 0,
          hard: true,
          minReclaim: { count: 524288000 },
        },
        { signal: 'imagefs.inodesFree', value: { count: 7 }, graceSeconds: 90, hard: false },
      ],
      transitionMillis: 300_000,
      maxPodGraceSeconds: 20,
    });
  });

  test.each<[Partial<EvictionTexts>, string]>([
    [{ hard: 'memory<1' }, '--eviction-hard: "memory<1" is not SIGNAL<VALUE'],
    [{ hard: 'memory.available=1Mi' }, 'is not SIGNAL<VALUE'],
    [{ hard: 'memory.available<much' }, '"much" of memory.available is neither an amount such as 100Mi'],
    [{ hard: 'memory.available<200%' }, 'is neither an amount'],
    [{ hard: 'memory.available<-5%' }, 'is neither an amount'],
    [{ hard: 'memory.available<-5Mi' }, 'is neither an amount'],
    [{ hard: 'memory.available<1<2' }, 'is not SIGNAL<VALUE'],
    [{ hard: 'memory.available<0' }, '"0" of memory.available is never met'],
    [{ minimumReclaim: 'memory.available=1=2' }, 'is not SIGNAL=VALUE'],
    [{ hard: 'memory.available<1,memory.available<2' }, 'memory.available is given twice'],
    [{ soft: 'memory.available<1' }, '--eviction-soft: memory.available needs a grace period'],
    [{ soft: 'memory.available<1', softGracePeriod: 'memory.available=long' }, '"long" is not a duration'],
    [{ soft: 'memory.available<1', softGracePeriod: 'memory.available=-1s' }, '"-1s" is not a duration'],
    [{ pressureTransitionPeriod: '1m3' }, '--eviction-pressure-transition-period: "1m3" is not a duration'],
    [{ pressureTransitionPeriod: '' }, '--eviction-pressure-transition-period: "" is not a duration'],
    [{ maxPodGracePeriod: '-1' }, '--eviction-max-pod-grace-period: -1 is not a whole number of seconds'],
  ])('parseEviction refuses the options %j', (texts, message) => {
    expect(() => config(texts)).toThrow(message);
  });

  it('parseEviction omits thresholds of 0% and 100%', () => {
    const { thresholds } = config({ hard: 'memory.available<0%,nodefs.available<100%,pid.available<10%' });
    expect(signals(thresholds)).toEqual(['pid.available']);
  });

  test.each([
    ['0', 0],
    ['90s', 90],
    ['1m30s', 90],
    ['2h', 7200],
    ['1.5h', 5400],
    ['500ms', 0.5],
    ['1s500ms', 1.5],
    ['.5m', 30],
  ])('parseSeconds reads %s as %s seconds', (text, seconds) => expect(parseSeconds('--x', text)).toBe(seconds));
});

describe('nextPressure', () => {
  it('a hard threshold is due immediately, and its condition stays for the transition period', () => {
    const hard = config({ hard: 'memory.available<100' });
    const met = nextPressure(noPressure, hard, memory(99), 1000);
    expect([signals(met.due), [...met.conditions]]).toEqual([['memory.available'], ['MemoryPressure']]);
    const over = nextPressure(met.state, hard, memory(100), 2000);
    expect([signals(over.due), [...over.conditions]]).toEqual([[], ['MemoryPressure']]);
    const later = nextPressure(over.state, hard, memory(100), 301_000);
    expect([...later.conditions]).toEqual([]);
  });

  it('a soft threshold sets its condition immediately, and is due after an uninterrupted grace period', () => {
    const soft = config({ soft: 'memory.available<10%', softGracePeriod: 'memory.available=30s' });
    const first = nextPressure(noPressure, soft, memory(99), 0);
    expect([signals(first.due), [...first.conditions]]).toEqual([[], ['MemoryPressure']]);
    const almost = nextPressure(first.state, soft, memory(99), 29_999);
    expect(signals(almost.due)).toEqual([]);
    expect(signals(nextPressure(almost.state, soft, memory(99), 30_000).due)).toEqual(['memory.available']);
    const broken = nextPressure(almost.state, soft, memory(100), 29_999);
    expect(signals(nextPressure(broken.state, soft, memory(99), 30_000).due)).toEqual([]);
  });

  it('nextPressure returns the time of the next change if the signals stay the same', () => {
    const both = config({
      hard: 'pid.available<10',
      pressureTransitionPeriod: '1m',
      soft: 'memory.available<10%',
      softGracePeriod: 'memory.available=30s',
    });
    const pids = (available: number): Observations => ({ 'pid.available': { available, capacity: 100 } });
    const first = nextPressure(noPressure, both, { ...memory(99), ...pids(9) }, 1000);
    expect(first.changesAt).toBe(31_000);
    const later = nextPressure(first.state, both, { ...memory(99), ...pids(10) }, 31_000);
    expect([signals(later.due), later.changesAt]).toEqual([['memory.available'], 61_000]);
    const over = nextPressure(later.state, both, { ...memory(100), ...pids(10) }, 61_000);
    expect([[...over.conditions], over.changesAt]).toEqual([['MemoryPressure'], 91_000]);
    expect(nextPressure(over.state, both, {}, 91_000).changesAt).toBeUndefined();
  });

  it('a threshold that was met stays met until its minimum reclaim is available as well', () => {
    const hard = config({ hard: 'memory.available<100', minimumReclaim: 'memory.available=50' });
    expect(signals(nextPressure(noPressure, hard, memory(120), 0).due)).toEqual([]);
    const met = nextPressure(noPressure, hard, memory(99), 0);
    const still = nextPressure(met.state, hard, memory(149), 1);
    expect(signals(still.due)).toEqual(['memory.available']);
    expect(signals(nextPressure(still.state, hard, memory(150), 2).due)).toEqual([]);
  });

  it('nextPressure returns thresholds for memory first, and none for a signal that the machine does not have', () => {
    const hard = config({ hard: 'pid.available<10,nodefs.available<10,imagefs.available<10,memory.available<10' });
    const low = { available: 1, capacity: 100 };
    const seen = { 'pid.available': low, 'nodefs.available': low, 'memory.available': low };
    const { due, conditions } = nextPressure(noPressure, hard, seen, 0);
    expect(signals(due)).toEqual(['memory.available', 'pid.available', 'nodefs.available']);
    expect([...conditions].sort()).toEqual(['DiskPressure', 'MemoryPressure', 'PIDPressure']);
  });
});
