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
