/**
 * Copies a plain object without the fields whose value is undefined. The loop is for speed: each decision on a Pod calls this function many
 * times.
 */
export function defined<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const copy: Partial<T> = {};
  for (const name in fields) {
    const value = fields[name];
    if (value !== undefined) copy[name] = value;
  }
  return copy as { [K in keyof T]: Exclude<T[K], undefined> };
}
