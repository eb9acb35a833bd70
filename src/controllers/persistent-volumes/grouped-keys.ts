/** Indexes the keys of objects by group, for example by the UID of the owner, so that a lookup does not scan all objects. */
export interface GroupedKeys<T> {
  put(object: T): void;
  /** `object` must be the version that was passed to put(), because another version may have other groups. */
  remove(object: T): void;
  has(group: string): boolean;
  keysOf(group: string): readonly string[];
}

export function groupedKeys<T>(
  keyOf: (object: T) => string,
  groupsOf: (object: T) => readonly string[],
): GroupedKeys<T> {
  const groups = new Map<string, Set<string>>();
  return {
    put(object) {
      for (const group of groupsOf(object)) {
        const keys = groups.get(group) ?? new Set();
        groups.set(group, keys.add(keyOf(object)));
      }
    },
    remove(object) {
      for (const group of groupsOf(object)) {
        const keys = groups.get(group);
        keys?.delete(keyOf(object));
        if (keys?.size === 0) groups.delete(group);
      }
    },
    has: (group) => groups.has(group),
    keysOf: (group) => [...(groups.get(group) ?? [])],
  };
}
