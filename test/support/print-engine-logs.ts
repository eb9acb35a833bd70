/** Vitest loads this file before each test file with real engines. */
import { afterEach, beforeAll } from 'vitest';
import { forgetStoppedEngines, printLogEnds } from './engine-logs.ts';

beforeAll(forgetStoppedEngines);
// Vitest calls the hooks of the test file before this one.
afterEach(({ task }) => {
  if (task.result?.state === 'fail') printLogEnds();
  forgetStoppedEngines();
});
