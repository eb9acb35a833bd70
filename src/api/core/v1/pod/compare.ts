/** Compares API values like upstream's semantic equality, and lists the differences between two values. */

export const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === '' ||
  (typeof value === 'object' && Object.keys(value).length === 0);

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

/** All values that count as absent are equal. */
export function sameValue(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (isEmpty(a) || isEmpty(b)) return isEmpty(a) && isEmpty(b);
  if (!isObject(a) || !isObject(b) || Array.isArray(a) !== Array.isArray(b)) return false;
  if (Array.isArray(a) && Array.isArray(b) && a.length !== b.length) return false;
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((key) => sameValue(a[key], b[key]));
}

/** Returns a line such as `spec.hostname: "a" -> "b"` for each field that differs. */
export function differences(old: unknown, now: unknown, path: string): string[] {
  if (sameValue(old, now)) return [];
  if (isObject(old) && isObject(now) && Array.isArray(old) === Array.isArray(now)) {
    const keys = [...new Set([...Object.keys(old), ...Object.keys(now)])];
    return keys.flatMap((key) =>
      differences(old[key], now[key], Array.isArray(old) ? `${path}[${key}]` : `${path}.${key}`),
    );
  }
  const shown = (value: unknown): string => (value === undefined ? 'unset' : JSON.stringify(value));
  return [`${path}: ${shown(old)} -> ${shown(now)}`];
}
