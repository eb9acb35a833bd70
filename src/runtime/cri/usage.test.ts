import { expect, test } from 'vitest';
import { type Connection, RuntimeCallError } from './connection.ts';
import { type ListedStats, toUsage, usageCalls } from './usage.ts';

const labels = { 'io.kubernetes.pod.uid': 'u', 'lifepod.io/attempt': '2' };
const stats: ListedStats = {
  attributes: { id: 'c1', metadata: { name: 'app', attempt: 2 }, labels },
  cpu: { timestamp: 1_700_000_000_123_400_000, usageCoreNanoSeconds: { value: 0 } },
  memory: {
    workingSetBytes: { value: 4096 },
    usageBytes: { value: 8192 },
    rssBytes: null,
    pageFaults: { value: 3 },
    majorPageFaults: null,
  },
  writableLayer: { usedBytes: { value: 10 }, inodesUsed: null },
};

test('toUsage() converts the values that the runtime reports, and omits the others', () => {
  expect(toUsage(stats)).toEqual({
    podUid: 'u',
    id: 'c1',
    name: 'app',
    attempt: 2,
    at: 1_700_000_000_123,
    cpuNanoSeconds: 0,
    workingSetBytes: 4096,
    usageBytes: 8192,
    pageFaults: 3,
    rootFs: { usedBytes: 10, inodesUsed: 0 },
  });
  expect(toUsage({ ...stats, writableLayer: null })).not.toHaveProperty('rootFs');
});

test('toUsage() returns undefined for a container that lifepod did not create, or that ended during the measurement', () => {
  const foreign = { id: 'x', metadata: null, labels: { 'io.kubernetes.pod.uid': 'u' } };
  expect(toUsage({ ...stats, attributes: foreign })).toBeUndefined();
  expect(toUsage({ ...stats, cpu: null })).toBeUndefined();
  expect(toUsage({ ...stats, memory: null })).toBeUndefined();
});

test.each([
  ['{"pid": 42}', 42],
  ['{"pid": 0}', undefined],
  ['{"pid": "42"}', undefined],
  ['not JSON', undefined],
])('the process ID of a sandbox is read from %s', async (info, pid) => {
  const connection = { unary: async () => ({ info: { info } }) } as unknown as Connection;
  expect(await usageCalls(connection, {}).sandboxPid('s', new AbortController().signal)).toBe(pid);
});

test('a sandbox that does not exist has no process ID; other failures are not hidden', async () => {
  const failing = (code: 'NotFound' | 'Internal') =>
    ({ unary: async () => Promise.reject(new RuntimeCallError(code, 'no')) }) as unknown as Connection;
  const pidOf = (connection: Connection) => usageCalls(connection, {}).sandboxPid('s', new AbortController().signal);
  expect(await pidOf(failing('NotFound'))).toBeUndefined();
  await expect(pidOf(failing('Internal'))).rejects.toThrow('Internal');
});
