import { expect, test } from 'vitest';
import type { Pod, PodSpec } from '../../api/generated/types.ts';
import { pressureRefusal } from './pressure-refusal.ts';
import type { PressureCondition } from './thresholds.ts';

const podOf = (spec: Partial<PodSpec>): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p' },
  spec: { containers: [{ name: 'app', image: 'i' }], ...spec },
});
const burstable = { containers: [{ name: 'app', image: 'i', resources: { requests: { memory: '1Mi' } } }] };
const tolerant = { tolerations: [{ key: 'node.kubernetes.io/memory-pressure', operator: 'Exists' }] };
const critical = { priority: 2_000_000_000 };

test.each<[string, PressureCondition[], Partial<PodSpec>, boolean, string | undefined]>([
  ['admits every Pod on a node without pressure', [], {}, false, undefined],
  ['refuses a BestEffort Pod under memory pressure', ['MemoryPressure'], {}, false, '[MemoryPressure]'],
  ['admits a Burstable Pod under memory pressure', ['MemoryPressure'], burstable, false, undefined],
  ['admits a Pod that tolerates memory pressure', ['MemoryPressure'], tolerant, false, undefined],
  ['refuses a Burstable Pod under disk pressure', ['DiskPressure'], burstable, false, '[DiskPressure]'],
  [
    'refuses a Pod that tolerates only one of two pressures',
    ['MemoryPressure', 'DiskPressure'],
    tolerant,
    false,
    '[MemoryPressure DiskPressure]',
  ],
  ['admits a critical Pod', ['PIDPressure'], critical, false, undefined],
  ['admits a static Pod', ['PIDPressure'], {}, true, undefined],
])('pressureRefusal %s', (_, conditions, spec, isStatic, shown) => {
  const refused = pressureRefusal(podOf(spec), isStatic, new Set(conditions));
  expect(refused?.message).toBe(shown === undefined ? undefined : `The node had condition: ${shown}. `);
});
