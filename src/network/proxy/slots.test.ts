import fc from 'fast-check';
import { expect, it } from 'vitest';
import { runAtOnce } from '../../platform/work-in-turns.ts';
import { assignSlots, NO_SLOTS, type Range, type Slots } from './slots.ts';

const LETTERS = [...'abcdefgh'];
const sets = fc.record({ cluster: fc.subarray(LETTERS), local: fc.subarray(LETTERS) });
const assign = ({ cluster, local }: { cluster: string[]; local: string[] }, previous: Slots): Slots =>
  runAtOnce(assignSlots({ cluster: new Set(cluster), local: new Set(local) }, previous));
const at = ({ targets }: Slots, { start, count }: Range): string[] => targets.slice(start, start + count);

it('the slots of each policy contain its endpoints, once each', () => {
  fc.assert(
    fc.property(fc.array(sets, { minLength: 1 }), (versions) => {
      let slots = NO_SLOTS;
      for (const version of versions) {
        slots = assign(version, slots);
        expect(at(slots, slots.cluster).sort()).toEqual([...version.cluster].sort());
        expect(at(slots, slots.local).sort()).toEqual([...version.local].sort());
        expect(new Set(slots.targets).size).toBe(slots.targets.length);
      }
    }),
  );
});

it.each<[string, string, string]>([
  ['abc', 'abc', 'abc'],
  ['abc', 'abcd', 'abcd'],
  ['abc', 'ac', 'ac'],
  ['abcd', 'bcd', 'dbc'],
  ['abc', 'adc', 'adc'],
  ['bc', 'abc', 'bca'],
])('endpoints keep their slots: %s becomes %s as %s', (before, after, expected) => {
  const cluster = (text: string) => ({ cluster: [...text], local: [] });
  const slots = assign(cluster(after), assign(cluster(before), NO_SLOTS));
  expect(slots.targets.join('')).toBe(expected);
});
