import { defineConfig } from 'vitest/config';
import { ENGINES, HEAVY, HTTP2, reporters } from './vitest.config.ts';

/** Three files at a time: they wait for much of their time. */
const LONG = { ...ENGINES, testTimeout: 300_000, maxWorkers: 3 };

/**
 * The number of workers of unit tests that seldom wait. It is set, because Vitest's default on two cores is one, and runs projects whose
 * numbers differ one after the other.
 */
const CORES = 2;

/**
 * Tests that take long: the examples as their READMEs describe, all cases of defer containers, failures of the node (pressure,
 * shutdown, kills of the engine), random requests, the heavy unit tests, and the properties with many more cases.
 */
export default defineConfig({
  test: {
    reporters,
    globalSetup: 'test/support/seed.ts',
    projects: [
      {
        test: {
          name: 'properties',
          include: ['src/simulation/defer.property.test.ts', 'src/simulation/defer-time.property.test.ts', HEAVY],
          maxWorkers: CORES,
          testTimeout: 600_000,
          hookTimeout: 180_000,
        },
      },
      {
        test: {
          name: 'jobs',
          env: { LIFEPOD_RUNS: process.env['LIFEPOD_RUNS'] ?? '10000' },
          include: ['src/controllers/job/job.property.test.ts'],
          maxWorkers: CORES,
          testTimeout: 900_000,
        },
      },
      {
        test: {
          name: 'http2',
          env: HTTP2,
          include: ['src/apiserver/*.test.ts'],
          exclude: [
            // Each of these opens its own connections, with HTTP/1.1.
            'src/apiserver/{client-errors,half-open,late-readers,listeners,pipelined,tls}.test.ts',
            // Some of its URLs have more than 64 kB, which a client of HTTP/2 does not send.
            'src/apiserver/hostile-users.test.ts',
          ],
          maxWorkers: CORES,
          testTimeout: 600_000,
          hookTimeout: 180_000,
        },
      },
      {
        test: {
          ...LONG,
          name: 'long',
          include: ['test/long/*.test.ts', 'test/long/examples/*.test.ts'],
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...LONG,
          name: 'alone',
          include: ['test/long/alone/*.test.ts', 'test/e2e/alone/fuzz.test.ts'],
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
