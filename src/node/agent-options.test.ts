import { expect, test } from 'vitest';
import { factsOf, type NodeAgentOptions } from './agent-options.ts';

test('factsOf() contains terminatingPhase only if the phase Terminating is turned off', () => {
  const options = { nodeIps: ['192.0.2.1'], runtimeName: 'containerd' } as unknown as NodeAgentOptions;
  const facts = { ips: ['192.0.2.1'], runtimeName: 'containerd' };
  expect(factsOf(options)).toEqual(facts);
  expect(factsOf({ ...options, terminatingPhase: true })).toEqual(facts);
  expect(factsOf({ ...options, terminatingPhase: false, maxGracePeriodExtensionSeconds: 60 })).toEqual({
    ...facts,
    terminatingPhase: false,
    maxGracePeriodExtensionSeconds: 60,
  });
});
