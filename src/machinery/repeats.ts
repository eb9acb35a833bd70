/** Which elements of a list come again, without comparing each with all others: clients may send a hundred thousand. */

/** For each element whether an equal one comes before it. */
export function repeats<T>(values: readonly T[]): boolean[] {
  const seen = new Set<T>();
  return values.map((value) => {
    const known = seen.has(value);
    seen.add(value);
    return known;
  });
}
