import fc from 'fast-check';
import { expect, test } from 'vitest';
import { candidates, findRejected, RejectedParts, withFallbacks } from './rejections.ts';
import type { Part, Rejections, Section } from './section.ts';

const sectionOf = (parts: Record<string, Part>): Section => new Map(Object.entries(parts));

function search(names: readonly string[], isBad: (present: ReadonlySet<string>) => boolean) {
  const steps = findRejected(names, new Error('all'));
  let attempts = 0;
  let step = steps.next();
  while (!step.done) {
    attempts++;
    const left = step.value;
    const present = new Set(names.filter((name) => !left.has(name)));
    step = steps.next(isBad(present) ? new Error([...present].join()) : undefined);
  }
  return { rejected: step.value as Rejections | undefined, attempts };
}
const namesOf = (count: number): string[] => Array.from({ length: count }, (_, index) => `p${index}`);

test('the search finds exactly the parts that nft rejects', () => {
  const property = fc.property(
    fc.integer({ min: 1, max: 60 }),
    fc.uniqueArray(fc.nat(59), { minLength: 1 }),
    (count, bad) => {
      const names = namesOf(count);
      const expected = names.filter((_, index) => bad.includes(index));
      fc.pre(expected.length > 0);
      const { rejected } = search(names, (present) => expected.some((name) => present.has(name)));
      expect([...(rejected?.keys() ?? [])].sort()).toEqual(expected.sort());
    },
  );
  fc.assert(property);
});

test('the search for one of 5,000 parts takes few attempts', () => {
  const { rejected, attempts } = search(namesOf(5000), (present) => present.has('p1234'));
  expect([...(rejected?.keys() ?? [])]).toEqual(['p1234']);
  expect(attempts).toBeLessThan(30);
});

test('one of two parts that exclude each other is rejected', () => {
  const { rejected } = search(namesOf(10), (present) => present.has('p2') && present.has('p7'));
  expect([...(rejected?.keys() ?? [])]).toEqual(['p7']);
});

test('if nft rejects the section without all of the parts, the search ends with nothing', () => {
  expect(search(namesOf(10), () => true)).toEqual({ rejected: undefined, attempts: 1 });
  expect(search([], () => false)).toEqual({ rejected: undefined, attempts: 0 });
});

test('if nft rejects nearly all parts, the number of attempts is limited', () => {
  const { rejected, attempts } = search(namesOf(5000), (present) => present.size > 0);
  expect(rejected?.size).toBe(5000);
  expect(attempts).toBeLessThan(210);
});

test('only new parts with a fallback may be left out', () => {
  const [old, added]: Part[] = [{ fallback: {} }, { fallback: {} }];
  const section = sectionOf({ old: old as Part, added: added as Part, base: {} });
  expect(candidates(section, sectionOf({ old: old as Part, added: { fallback: {} } }))).toEqual(['added']);
});

test('a part that is left out has its fallback, and the parts that only it needs are missing', () => {
  const section = sectionOf({
    base: { chains: [] },
    bad: { fallback: { chains: [{ name: 'c', rules: [] }] }, needs: ['shared', 'own'] },
    good: { fallback: {}, needs: ['shared'] },
    shared: { needs: ['slot'] },
    own: { needs: ['slot', 'own slot'] },
    slot: {},
    'own slot': {},
  });
  const rest = withFallbacks(section, new Set(['bad']));
  expect([...rest.keys()]).toEqual(['base', 'bad', 'good', 'shared', 'slot']);
  expect(rest.get('bad')).toBe(section.get('bad')?.fallback);
  expect(rest.get('good')).toBe(section.get('good'));
});

test('a rejected part is tried again when the section has another object for it', () => {
  const rejected = new RejectedParts();
  const bad: Part = { chains: [], fallback: {} };
  const section = sectionOf({ bad, good: {} });
  rejected.add('services', section, new Map([['bad', new Error('no')]]));
  expect(rejected.without('services', section).get('bad')).toBe(bad.fallback);
  expect(rejected.of('services')).toEqual(new Map([['bad', new Error('no')]]));
  expect(rejected.of('policies')).toEqual(new Map());
  const changed = sectionOf({ bad: { ...bad }, good: {} });
  expect(rejected.without('services', changed)).toBe(changed);
  expect(rejected.of('services')).toEqual(new Map());
});
