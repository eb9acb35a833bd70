import { expect, test } from 'vitest';
import { podOf } from '../pod-fixtures.ts';
import { hasEnded } from './final-phase.ts';

test.each([
  ['Pending', false],
  ['Running', false],
  ['Terminating', false],
  ['Succeeded', true],
  ['Failed', true],
  ['Unknown', false],
])('a Pod has terminated only in the phases Succeeded and Failed: %s', (phase, ended) => {
  expect(hasEnded(podOf({}, { phase }))).toBe(ended);
});
