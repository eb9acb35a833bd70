import { expect, test } from 'vitest';
import { defaultInterfaces, parseInterfaces, parseMemory, parseStat } from './machine-usage.ts';

test('parseStat adds up CPU time without idle and iowait, in nanoseconds', () => {
  const text = 'cpu  100 20 30 4000 500 6 7 8 90 1\ncpu0 1 1 1 1\nintr 5\nbtime 1795164781\n';
  expect(parseStat(text)).toEqual({ cpuNanoSeconds: 1.71e9, bootedAt: 1795164781000 });
});

test('parseMemory excludes inactive file pages from the working set', () => {
  const text =
    'MemTotal:  1000 kB\nMemFree:  300 kB\nMemAvailable: 800 kB\nInactive: 250 kB\nAnonPages: 90 kB\nInactive(file):  200 kB\n';
  expect(parseMemory(text)).toEqual({
    usageBytes: 700 * 1024,
    workingSetBytes: 500 * 1024,
    availableBytes: 500 * 1024,
    rssBytes: 90 * 1024,
  });
});

test('parseInterfaces reads the counters of all interfaces but the loopback', () => {
  const text = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:  5042      44    0    0    0     0          0         0     5042      44    0    0    0     0       0          0
  eth0:18522109   200    3    0    0     0          0         0  4987731      90    4    0    0     0       0          0
`;
  expect(parseInterfaces(text)).toEqual([
    { name: 'eth0', rxBytes: 18522109, rxErrors: 3, txBytes: 4987731, txErrors: 4 },
  ]);
});

test('defaultInterfaces returns the interfaces of default routes', () => {
  expect(
    defaultInterfaces('Iface\tDestination\tGateway\neth0\t00000000\t010011AC\neth0\t000011AC\t0\nlpe0\t0000DE0A\t0\n'),
  ).toEqual(['eth0']);
});
