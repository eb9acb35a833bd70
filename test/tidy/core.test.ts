/** The core stays small enough to be read: src/lifecycle, without its tests. */
import { basename, dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { importsOf, read, typeScript } from './sources.ts';

const LIMIT = 2600;

const core = typeScript.filter(
  (path) => path.startsWith('src/lifecycle/') && !path.endsWith('.test.ts') && basename(path) !== 'fixtures.ts',
);
const linesOf = (path: string): number => read(path).split('\n').length - 1;

test(`the core has at most ${LIMIT} lines`, () => {
  const lines = core.map(linesOf).reduce((sum, each) => sum + each, 0);
  expect(lines).toBeLessThanOrEqual(LIMIT);
});

test('the end of a Pod is one file of under 300 lines', () => {
  expect(linesOf('src/lifecycle/ending.ts')).toBeLessThan(300);
});

test('no file of the core imports itself by way of others', () => {
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
