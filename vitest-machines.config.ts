import { defineConfig } from 'vitest/config';
import { reporters } from './vitest.config.ts';

/** Virtual machines like those of users: one per file, two at a time. An emulated processor is about twenty times slower. */
export default defineConfig({
  test: {
    reporters,
    globalSetup: 'test/machines/setup.ts',
    include: ['test/machines/**/*.test.ts'],
    testTimeout: 600_000,
    hookTimeout: 900_000,
    maxWorkers: 2,
    bail: 1,
  },
});
