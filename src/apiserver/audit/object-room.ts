/** Limits the memory of the recorded objects of requests that have not ended yet. */

/**
 * The maximum length of a recorded object. Longer objects are not recorded: most are lists, but a stored object may also be longer, and so
 * may the JSON of an object from a protobuf body.
 */
const MAX_OBJECT_CHARS = 4 * 1024 * 1024;
/** The maximum length of the texts of all unfinished requests together. */
const MAX_CHARS = 64 * 1024 * 1024;

export interface ObjectRoom {
  /**
   * Returns the concatenated texts of an object, without a line break at the end, and counts them until leave() is called. Returns
   * undefined, and counts nothing, if the texts exceed a limit.
   */
  join(texts: Iterable<string>): string | undefined;
  /** Stops counting `chars` characters. */
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
