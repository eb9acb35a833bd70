/**
 * Returns a copy of the object, which must be a plain object, without the fields whose value is undefined. It is a loop because each decision
 * on a Pod calls it many times.
 */
export function defined<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const copy: Partial<T> = {};
  for (const name in fields) {
    const value = fields[name];
    if (value !== undefined) copy[name] = value;
  }
  return copy as { [K in keyof T]: Exclude<T[K], undefined> };
}
