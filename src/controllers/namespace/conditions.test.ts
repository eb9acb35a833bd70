import { expect, test } from 'vitest';
import type { NamespaceCondition } from '../../api/generated/types.ts';
import { CONFIG_MAPS, DEPLOYMENTS, PODS } from '../../api/resources.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { changedConditions, type Remains } from './conditions.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const LATER = NOW + 60_000;
const object = (...finalizers: string[]): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Any',
  metadata: { name: 'x', finalizers },
});
const NOTHING: Remains = { left: [], errors: [] };
const shown = (conditions: readonly NamespaceCondition[]): string[] =>
  conditions.map(({ type, status, reason, message }) => `${type} ${status} ${reason}: ${message}`);

const REMOVED = [
  'NamespaceDeletionDiscoveryFailure False ResourcesDiscovered: All resources successfully discovered',
  'NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions: All legacy kube types successfully parsed',
  'NamespaceDeletionContentFailure False ContentDeleted: All content successfully deleted, may be waiting on finalization',
  'NamespaceContentRemaining False ContentRemoved: All content successfully removed',
  'NamespaceFinalizersRemaining False ContentRemoved: All content successfully removed',
];

test('an empty namespace has five conditions that are False', () => {
  expect(shown(changedConditions([], NOTHING, NOW))).toEqual(REMOVED);
});

test.each<[string, Partial<Remains>, string[]]>([
  [
    'remaining objects are counted by resource',
    {
      left: [
        { ref: PODS, objects: [object(), object()] },
        { ref: DEPLOYMENTS, objects: [object()] },
      ],
    },
    [
      'NamespaceContentRemaining True SomeResourcesRemain: Some resources are remaining: deployments.apps has 1 resource instances, pods. has 2 resource instances',
    ],
  ],
  [
    'remaining finalizers are counted across resources',
    {
      left: [
        { ref: PODS, objects: [object('x.io/b', 'x.io/a')] },
        { ref: CONFIG_MAPS, objects: [object('x.io/b')] },
      ],
    },
    [
      'NamespaceContentRemaining True SomeResourcesRemain: Some resources are remaining: configmaps. has 1 resource instances, pods. has 1 resource instances',
      'NamespaceFinalizersRemaining True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: x.io/a in 1 resource instances, x.io/b in 2 resource instances',
    ],
  ],
  [
    'failed deletes are listed in order',
    { errors: ['second', 'first'] },
    [
      'NamespaceDeletionContentFailure True ContentDeletionFailed: Failed to delete all resource types, 2 remaining: first, second',
    ],
  ],
])('%s', (_, remains, expected) => {
  const before = changedConditions([], NOTHING, NOW);
  const changed = changedConditions(before, { ...NOTHING, ...remains }, LATER);
  expect(shown(changed)).toEqual(expected);
  expect(changed.every(({ lastTransitionTime }) => lastTransitionTime === '2026-01-01T00:01:00Z')).toBe(true);
});

test('a condition whose message alone changes keeps its lastTransitionTime, and a condition that is the same is not written', () => {
  const of = (count: number): Remains => ({
    left: [{ ref: PODS, objects: Array.from({ length: count }, () => object()) }],
    errors: [],
  });
  const before = changedConditions([], of(2), NOW);
  expect(changedConditions(before, of(2), LATER)).toEqual([]);
  expect(changedConditions(before, of(1), LATER)).toMatchObject([
    { type: 'NamespaceContentRemaining', lastTransitionTime: '2026-01-01T00:00:00Z' },
  ]);
});
