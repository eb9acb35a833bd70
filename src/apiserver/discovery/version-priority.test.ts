import { expect, it } from 'vitest';
import { byPriority } from './version-priority.ts';

it('versions are sorted by stability, then by number, and other names come last', () => {
  const sorted = 'v10 v2 v1 v11beta2 v10beta3 v3beta1 v12alpha1 v11alpha2 foo1 foo10 v01'.split(' ');
  const shuffled = 'foo10 v1 v3beta1 v01 v11alpha2 v2 foo1 v12alpha1 v10 v10beta3 v11beta2'.split(' ');
  expect(shuffled.sort(byPriority)).toEqual(sorted);
  expect(byPriority('v1', 'v1')).toBe(0);
});
