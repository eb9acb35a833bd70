/**
 * Calls `call` for each item, with at most `limit` calls at a time. The results are like those of Promise.allSettled(), in the order of the
 * items.
 */
export async function settleAtMost<Item, Result>(
  limit: number,
  items: readonly Item[],
  call: (item: Item) => Promise<Result>,
): Promise<PromiseSettledResult<Result>[]> {
  const results: PromiseSettledResult<Result>[] = [];
  const left = items.entries();
  const work = async (): Promise<void> => {
    for (const [index, item] of left) {
      const [result] = await Promise.allSettled([Promise.resolve(item).then(call)]);
      results[index] = result as PromiseSettledResult<Result>;
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, work));
  return results;
}

/**
 * Settles as Promise.all() does, but only after all promises, even if one rejects. The caller can then stop everything that was started.
 */
export async function together<T extends readonly unknown[]>(
  parts: readonly [...T],
): Promise<{ -readonly [I in keyof T]: Awaited<T[I]> }> {
  const results = await Promise.allSettled(parts);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
  return results.map((result) => (result as PromiseFulfilledResult<unknown>).value) as {
    -readonly [I in keyof T]: Awaited<T[I]>;
  };
}
