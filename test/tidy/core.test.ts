/** A reader should be able to read the core (src/lifecycle without its tests) as a whole. */
import { basename, dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { importsOf, read, typeScript } from './sources.ts';

const LIMIT = 2700;

const core = typeScript.filter(
  (path) => path.startsWith('src/lifecycle/') && !path.endsWith('.test.ts') && basename(path) !== 'fixtures.ts',
);
const linesOf = (path: string): number => read(path).split('\n').length - 1;

test(`src/lifecycle has at most ${LIMIT} lines without its tests`, () => {
  const lines = core.map(linesOf).reduce((sum, each) => sum + each, 0);
  expect(lines).toBeLessThanOrEqual(LIMIT);
});

test('src/lifecycle/termination-waves.ts, which ends Pods, has fewer than 300 lines', () => {
  expect(linesOf('src/lifecycle/termination-waves.ts')).toBeLessThan(300);
});

test('no file of src/lifecycle is part of an import cycle', () => {
  const imported = new Map(
    core.map((path) => [
      path,
      importsOf(read(path)).flatMap((name) => (name.startsWith('.') ? [join(dirname(path), name)] : [])),
    ]),
  );
  const reaches = (from: string, to: string, seen = new Set<string>()): boolean =>
    (imported.get(from) ?? []).some((next) => {
      if (next === to) return true;
      if (seen.has(next)) return false;
      seen.add(next);
      return reaches(next, to, seen);
    });
  expect(core.filter((path) => reaches(path, path))).toEqual([]);
});
