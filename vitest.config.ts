import { defineConfig, type ViteUserConfig } from 'vitest/config';

/** The path of a file to which the results are written as JSON. */
const report = process.env['LIFEPOD_TEST_REPORT'];

export const reporters: NonNullable<ViteUserConfig['test']>['reporters'] =
  report === undefined ? ['default'] : ['default', ['json', { outputFile: report }]];

/** The project `unit` uses no system resources. The project `real` runs real containers, one file at a time. */
export default defineConfig({
  test: {
    reporters,
    globalSetup: 'test/support/seed.ts',
    projects: [
      {
        test: { name: 'unit', include: ['src/**/*.test.ts', 'test/tidy/**/*.test.ts'], testTimeout: 60_000 },
      },
      {
        test: { name: 'contract', include: ['test/contract/**/*.test.ts'], testTimeout: 120_000, hookTimeout: 120_000 },
      },
      {
        test: {
          name: 'real',
          include: ['test/integration/**/*.test.ts', 'test/e2e/**/*.test.ts'],
          testTimeout: 180_000,
          hookTimeout: 180_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
