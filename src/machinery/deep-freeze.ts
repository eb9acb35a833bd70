/** Freezes a JSON value with all its content, so that code that modifies a shared object throws. Skips values that are already frozen. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const inner of Array.isArray(value) ? value : Object.values(value)) deepFreeze(inner);
  return Object.freeze(value);
}
