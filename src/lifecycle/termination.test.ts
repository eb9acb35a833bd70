import { expect, it } from 'vitest';
import type { Pod } from '../api/generated/types.ts';
import { formatTime } from '../machinery/time.ts';
import { terminationInForce } from './termination.ts';
import { emptyMemory } from './turn.ts';
import type { Input } from './types.ts';
import { viewOf } from './view.ts';

const T0 = 1_700_000_000_000;
const DEADLINE = T0 + 20_000;

/** As an agent that begins anew sees it: its list began at T0, and a later delete left 1 s. */
const deadlineAt = (now: number, deletedAt: number): number | undefined => {
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'p',
      deletionTimestamp: formatTime(deletedAt + 1000),
      deletionGracePeriodSeconds: 1,
    },
    spec: { containers: [{ name: 'app' }], deferContainers: [{ name: 'entry' }] },
    status: { termination: { reason: 'Deleted', startedAt: formatTime(T0), deadline: formatTime(DEADLINE) } },
  };
  const input: Input = {
    pod,
    removed: false,
    node: { ips: [], runtimeName: 'none' },
    observed: {
      ...{ sandboxes: [], containers: [], images: {}, volumes: 'mounted', inFlight: new Set() },
      ...{ failures: {}, probes: {}, hooks: {} },
    },
    memory: emptyMemory(),
    now,
  };
  return terminationInForce(input, viewOf(input), T0)?.deadline;
};

it('a delete that nobody saw shortens what is left of the deadline, and does not bring a passed one back', () => {
  expect(deadlineAt(T0 + 6000, T0 + 5500)).toBe(T0 + 7000);
  expect(deadlineAt(T0 + 12_000, T0 + 5000)).toBe(T0 + 12_000);
  expect(deadlineAt(T0 + 30_000, T0 + 5000)).toBe(DEADLINE);
});
