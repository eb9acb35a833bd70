/** Limits the memory of the recorded objects of unfinished requests. */

/** Longer objects are not recorded. */
const MAX_OBJECT_CHARS = 4 * 1024 * 1024;
const MAX_CHARS = 64 * 1024 * 1024;

export interface ObjectRoom {
  /**
   * Joins the texts, without a line break at the end, and counts the result until leave() is called. Returns undefined, and counts nothing,
   * if the texts exceed a limit.
   */
  join(texts: Iterable<string>): string | undefined;
  leave(chars: number): void;
}

export function createObjectRoom(limit = MAX_CHARS, objectLimit = MAX_OBJECT_CHARS): ObjectRoom {
  let used = 0;
  return {
    join(texts) {
      let whole = '';
      for (const text of texts) {
        if (whole.length + text.length > Math.min(objectLimit, limit - used)) return undefined;
        whole += text;
      }
      const object = whole.endsWith('\n') ? whole.slice(0, -1) : whole;
      used += object.length;
      return object;
    },
    leave(chars) {
      used -= chars;
    },
  };
}
