/** Finds duplicate list elements without comparing all pairs, because clients may send a hundred thousand elements. */

/** Returns for each element whether an equal element precedes it. Elements are compared like the values of a Set. */
export function repeats<T>(values: readonly T[]): boolean[] {
  const seen = new Set<T>();
  return values.map((value) => {
    const known = seen.has(value);
    seen.add(value);
    return known;
  });
}
