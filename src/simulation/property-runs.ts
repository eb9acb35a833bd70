/** Checks many properties on the same random lives: each life runs once for all properties. Failures are shrunk for each property. */
import fc from 'fast-check';
import { beforeAll, expect, it } from 'vitest';
import { type Life, type LifeResult, live } from './pod-life.ts';

export type Property = (result: LifeResult, life: Life) => void;

export interface Runs {
  numRuns: number;
  seed: number;
}

/** The time limit for `numRuns` lives. A life takes about 30 ms on an idle machine. */
export const limitMillisOf = (numRuns: number): number => 300_000 + numRuns * 300;

export function holdProperties(
  properties: Readonly<Record<string, Property>>,
  arbitrary: fc.Arbitrary<Life>,
  { numRuns, seed }: Runs,
): void {
  const limitMillis = limitMillisOf(numRuns);
  let lived = 0;
  /** By property: the number, from 0, of the first life in which the property does not hold. */
  const broken = new Map<string, number>();
  beforeAll(async () => {
    const all = fc.asyncProperty(arbitrary, async (life) => {
      const result = await live(life);
      for (const [name, property] of Object.entries(properties))
        try {
          property(result, life);
        } catch {
          if (broken.has(name)) continue;
          broken.set(name, lived);
          console.log(`seed ${seed}, life ${lived} breaks: ${name}`);
        }
      lived++;
    });
    await fc.assert(all, { numRuns, seed });
  }, limitMillis);

  it.each(Object.entries(properties))(
    '%s',
    async (name, property) => {
      expect(lived).toBe(numRuns);
      const first = broken.get(name);
      if (first === undefined) return;
      // Run the lives again with this property alone, so that fast-check reports the smallest life that breaks it.
      await fc.assert(
        fc.asyncProperty(arbitrary, async (life) => property(await live(life), life)),
        { numRuns, seed, path: String(first) },
      );
    },
    limitMillis,
  );
}
