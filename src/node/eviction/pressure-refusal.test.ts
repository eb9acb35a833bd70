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
const tolerating = (toleration: object) => ({
  tolerations: [{ key: 'node.kubernetes.io/memory-pressure', ...toleration }],
});
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

test.each<[string, 'tolerates' | 'does not tolerate', object]>([
  ['with the operator Exists and no key', 'tolerates', { key: undefined, operator: 'Exists' }],
  ['with the operator Exists and an empty key', 'tolerates', { key: '', operator: 'Exists' }],
  ['with the operator Exists and another key', 'does not tolerate', { key: 'a', operator: 'Exists' }],
  ['with no operator and no value', 'tolerates', {}],
  ['with the operator Equal and an empty value', 'tolerates', { operator: 'Equal', value: '' }],
  ['with the operator Equal and a value', 'does not tolerate', { operator: 'Equal', value: 'x' }],
  ['with no operator and another key', 'does not tolerate', { key: 'a' }],
  ['with no operator and no key', 'does not tolerate', { key: undefined }],
  ['with an empty effect', 'tolerates', { effect: '' }],
  ['with the effect NoSchedule', 'tolerates', { effect: 'NoSchedule' }],
  ['with the effect NoExecute', 'does not tolerate', { effect: 'NoExecute' }],
])('a Pod whose toleration is one %s %s memory pressure', (_, verb, toleration) => {
  const refused = pressureRefusal(podOf(tolerating(toleration)), false, new Set(['MemoryPressure']));
  expect(refused === undefined).toBe(verb === 'tolerates');
});
