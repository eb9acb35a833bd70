/** The number of texts that are sorted or merged in one step. */
const STEP_LENGTH = 2048;

/** Returns the texts in the order of Array.sort(). Yields between steps of a few milliseconds. */
export function* sortInSteps(texts: readonly string[]): Generator<void, string[]> {
  let runs: string[][] = [];
  for (let start = 0; start < texts.length; start += STEP_LENGTH) {
    if (start > 0) yield;
    runs.push(texts.slice(start, start + STEP_LENGTH).sort());
  }
  while (runs.length > 1) {
    const merged: string[][] = [];
    for (let index = 0; index < runs.length; index += 2)
      merged.push(yield* merge(runs[index] as string[], runs[index + 1] ?? []));
    runs = merged;
  }
  return runs[0] ?? [];
}

function* merge(a: readonly string[], b: readonly string[]): Generator<void, string[]> {
  const merged: string[] = [];
  let [fromA, fromB] = [0, 0];
  while (fromA < a.length || fromB < b.length) {
    if (merged.length % STEP_LENGTH === STEP_LENGTH - 1) yield;
    const [first, second] = [a[fromA], b[fromB]];
    if (second === undefined || (first !== undefined && first <= second)) {
      merged.push(first as string);
      fromA++;
    } else {
      merged.push(second);
      fromB++;
    }
  }
  return merged;
}
