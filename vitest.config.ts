import { defineConfig, type ViteUserConfig } from 'vitest/config';
import { LongFilesFirst } from './test/support/long-files-first.ts';
import { SummaryReporter } from './test/support/summary-reporter.ts';

/** The path of a file to which the results are written as JSON. */
const report = process.env['LIFEPOD_TEST_REPORT'];

export const reporters: NonNullable<ViteUserConfig['test']>['reporters'] = [
  'default',
  new SummaryReporter(),
  ...(report === undefined ? [] : [['json', { outputFile: report }] as [string, { outputFile: string }]]),
];

/** Unit tests that use much memory or many seconds of processor time: `npm run test:long` runs them. */
export const HEAVY =
  'src/apiserver/{hostile-waits,hostile-yaml,registry/object-memory-limit,slow-bodies,slow-readers}.test.ts';

/** With this environment, the client of the tests of the API server uses HTTP/2. */
export const HTTP2 = { LIFEPOD_PROTOCOL: 'h2' };

/** The tests of the API server in which the protocol may matter. `npm run test:long` runs the others with HTTP/2. */
const HTTP2_TESTS = [
  'src/apiserver/{certificates,connections,hostile-answers,hostile-bodies,hostile-crowds,late-bodies,server}.test.ts',
  'src/apiserver/{auth/authentication,discovery,openapi,representation}/**/*.test.ts',
  'src/apiserver/http/*.test.ts',
];

/** The common settings of tests with real engines: a build of the sources, and the logs of engines when a test fails. */
export const ENGINES = {
  hookTimeout: 180_000,
  globalSetup: 'test/support/build.ts',
  setupFiles: ['test/support/print-engine-logs.ts', 'test/support/lifepod-on-path.ts'],
};

/** Tests of real containers spend most of their time waiting, so several files run at the same time. */
const REAL = { ...ENGINES, testTimeout: 180_000 };

/**
 * The numbers of workers are those with which two cores are busy all the time: unit tests seldom wait, tests of real containers often do.
 * Files with an engine of their own wait most, for its start and its end.
 */
const WORKERS = { unit: 3, shared: 4, own: 5 };

/**
 * The files of `unit` use no system resources, and share the modules that a worker has loaded. `delayed` runs those of the registry
 * and the server again, except slow ones, with a watch cache that lags behind its store. `http2` runs some of those of the server again,
 * with a client of HTTP/2. The other projects run real containers, one group after the other. The files of `e2e` share an engine for each
 * worker (test/support/shared-engine.ts), those of `own` start the engines that they need, and those of `alone` measure or load the
 * machine, so that no other tests run at the same time.
 */
export default defineConfig({
  test: {
    reporters,
    globalSetup: 'test/support/seed.ts',
    sequence: { sequencer: LongFilesFirst },
    projects: [
      {
        test: {
          name: 'unit',
          include: ['src/**/*.test.ts', 'test/nodes/**/*.test.ts', 'test/tidy/**/*.test.ts'],
          exclude: [HEAVY],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          maxWorkers: WORKERS.unit,
          isolate: false,
        },
      },
      {
        test: {
          name: 'delayed',
          env: { LIFEPOD_STORE: 'delayed' },
          include: ['src/apiserver/*.test.ts', 'src/apiserver/{http,registry}/**/*.test.ts'],
          exclude: [
            HEAVY,
            'src/apiserver/{client-errors,connections,half-open,hostile-*,pipelined}.test.ts',
            'src/apiserver/registry/{properties,reads/freshness}.test.ts',
          ],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          maxWorkers: WORKERS.unit,
          isolate: false,
        },
      },
      {
        test: {
          name: 'http2',
          env: HTTP2,
          include: HTTP2_TESTS,
          testTimeout: 60_000,
          hookTimeout: 60_000,
          maxWorkers: WORKERS.unit,
          isolate: false,
        },
      },
      {
        test: {
          name: 'contract',
          include: ['test/contract/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          maxWorkers: WORKERS.unit,
        },
      },
      {
        test: {
          ...REAL,
          name: 'e2e',
          include: ['test/e2e/*.test.ts', 'test/clients/*.test.ts'],
          isolate: false,
          maxWorkers: WORKERS.shared,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...REAL,
          name: 'own',
          include: ['test/e2e/own-engine/**/*.test.ts', 'test/integration/**/*.test.ts'],
          isolate: false,
          maxWorkers: WORKERS.own,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          ...REAL,
          name: 'alone',
          include: ['test/e2e/alone/**/*.test.ts'],
          maxWorkers: 1,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
