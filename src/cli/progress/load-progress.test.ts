import { expect, test } from 'vitest';
import type { LoadStep } from '../../runtime/images/load.ts';
import { loadProgress } from './load-progress.ts';

const MIB = 1024 * 1024;
const step = (kind: LoadStep['kind'], doneMebibytes: number, file = '/a.tar'): LoadStep => ({
  kind,
  file,
  doneBytes: doneMebibytes * MIB,
  totalBytes: 40 * MIB,
});

function shownFor(isShown: boolean, steps: readonly [at: number, LoadStep][]) {
  const [shown, said]: [string[], string[]] = [[], []];
  let now = 0;
  const progress = loadProgress(
    { isShown, show: (text) => void shown.push(text) },
    (line) => void said.push(line),
    () => now,
  );
  for (const [at, each] of steps) {
    now = at;
    progress(each);
  }
  return { shown, said };
}

const STEPS: [number, LoadStep][] = [
  [0, step('checking', 0)],
  [50, step('checking', 20)],
  [60, step('loading', 0)],
  [70, step('loading', 1)],
  [170, step('loading', 20)],
  [180, step('unpacking', 40)],
  [190, step('checking', 0, '/b.tar')],
];

test('a terminal shows each step and, ten times a second, how much of it is done', () => {
  expect(shownFor(true, STEPS)).toEqual({
    shown: [
      'checking /a.tar: 0 B of 40 MiB, 0%',
      'loading /a.tar: 0 B of 40 MiB, 0%',
      'loading /a.tar: 20 MiB of 40 MiB, 50%',
      'unpacking /a.tar',
      'checking /b.tar: 0 B of 40 MiB, 0%',
    ],
    said: [],
  });
});

test('without a terminal there is one line for each archive that is loaded', () => {
  expect(shownFor(false, STEPS)).toEqual({ shown: [], said: ['loading /a.tar (40 MiB)'] });
});
