import { expect, test } from 'vitest';
import { silentLog } from '../platform/silent-log.ts';
import type { NodeAgentOptions } from './agent-options.ts';
import { readNodeFacts } from './node-facts.ts';

test('readNodeFacts() fails only after the control groups are complete, so that they can be removed', async () => {
  let isCapacityRead = false;
  const options = {
    dataDir: '/none',
    log: silentLog,
    podCgroups: { driver: 'cgroupfs' },
    // readNodeFacts() reads this property only to create the control groups.
    get capacity() {
      isCapacityRead = true;
      throw new Error('no groups in this test');
    },
    runtime: { features: () => Promise.reject(new Error('interrupted')) },
    signal: AbortSignal.abort(),
  } as unknown as NodeAgentOptions;
  await expect(readNodeFacts(options)).rejects.toThrow();
  expect(isCapacityRead).toBe(true);
});
