import { expect, test } from 'vitest';
import type { Pod, PodSpec } from '../../api/generated/types.ts';
import { pressureRefusal } from './pressure-refusal.ts';
import type { PressureCondition } from './thresholds.ts';

const podOf = (spec: Partial<PodSpec>): Pod => ({
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' } },
  spec: { containers: [{ name: 'app', image: 'i' }], ...spec },
});
const burstable = { containers: [{ name: 'app', image: 'i', resources: { requests: { memory: '1Mi' } } }] };
const tolerant = { tolerations: [{ key: 'node.kubernetes.io/memory-pressure', operator: 'Exists' }] };
const critical = { priority: 2_000_000_000 };

test.each<[PressureCondition[], Partial<PodSpec>, boolean, string | undefined]>([
  [[], {}, false, undefined],
  [['MemoryPressure'], {}, false, '[MemoryPressure]'],
  [['MemoryPressure'], burstable, false, undefined],
  [['MemoryPressure'], tolerant, false, undefined],
  [['DiskPressure'], burstable, false, '[DiskPressure]'],
  [['MemoryPressure', 'DiskPressure'], tolerant, false, '[MemoryPressure DiskPressure]'],
  [['PIDPressure'], critical, false, undefined],
  [['PIDPressure'], {}, true, undefined],
])('under %j a Pod with the spec %j (static: %s) is refused with %s', (conditions, spec, isStatic, shown) => {
  const refused = pressureRefusal(podOf(spec), isStatic, new Set(conditions));
  expect(refused?.message).toBe(shown === undefined ? undefined : `The node had condition: ${shown}. `);
});
