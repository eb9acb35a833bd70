/**
 * Copies the labels and annotations that endpoints take from a Service or from Endpoints. If they are large, none are copied, because each
 * slice would have a copy. (Upstream has no limit.)
 */

/** In characters of all keys and values. */
const MAX_CHARACTERS = 16 * 1024;

export function copied(entries: Readonly<Record<string, string>> = {}): Record<string, string> {
  const length = Object.entries(entries).reduce((sum, [key, value]) => sum + key.length + value.length, 0);
  return length > MAX_CHARACTERS ? {} : { ...entries };
}
