/** Long lists of a Pod are read in linear time. */
import { expect, test } from 'vitest';
import type { PodSpec } from '../../../generated/types.ts';
import { containerOf, deferOf } from './pod-fixtures.ts';
import { validateDeferContainers } from './validate-defers.ts';

/** Going through all pairs takes several times STALL_MILLIS. */
const STALL_MILLIS = 1000;

const list = <T>(count: number, item: (index: number) => T): T[] => Array.from({ length: count }, (_, at) => item(at));

/** In milliseconds of CPU time. */
function timeOf(call: () => void): number {
  const began = process.cpuUsage();
  call();
  const { user, system } = process.cpuUsage(began);
  return (user + system) / 1000;
}

test('host ports of defer containers beside those of app containers', () => {
  const ports = list(1000, (index) => ({ containerPort: 1, hostPort: index + 1 }));
  const spec: PodSpec = {
    containers: list(10_000, (index) => containerOf(`c${index}`, index === 0 ? { ports } : {})),
    deferContainers: list(10_000, (index) => deferOf(`d${index}`, { trigger: index % 2 ? 'PostExit' : 'PreExit' })),
  };
  spec.deferContainers?.push(deferOf('last', { trigger: 'PreExit', ports: ports.slice(-1) }));
  const errors = () => validateDeferContainers({ spec, volumes: new Map(), claimNames: new Set() });
  const duplicates = () => errors().filter(({ body }) => body.startsWith('Duplicate value'));
  expect(timeOf(() => expect(duplicates()).toHaveLength(1))).toBeLessThan(STALL_MILLIS);
});
