/**
 * Counts the bytes of request bodies and WebSocket messages that are being read, and those of bodies that have been read and whose
 * requests are not answered yet. The bytes of all clients are bounded, each of the two kinds for itself.
 */

/** The limit of all parts that are being read, and that of all complete ones. */
const LIMIT_BYTES = 64 * 1024 * 1024;
/** Up to this size a complete part does not wait for room: large bodies do not hold up small ones. */
const SMALL_BYTES = 64 * 1024;

export interface Unfinished {
  /**
   * `refuse` is called if all parts that are being read are together larger than the limit and this one is the largest. The part
   * has then ended.
   */
  begin(refuse: () => void): UnfinishedPart;
}

export interface UnfinishedPart {
  /** Has no effect after the part has ended. */
  add(bytes: number): void;
  /**
   * All of it has been read. Calls `proceed` once there is room for it among the complete parts, at once for a small one. From then
   * on it is not refused, and counts there until its end. Until then it counts among those that are being read.
   */
  complete(proceed: () => void): void;
  /** May be called again. */
  end(): void;
}

interface Part {
  bytes: number;
  refuse(): void;
}

/** A set of parts, and the sum of their bytes. */
function countedParts() {
  const parts = new Set<Part>();
  let bytes = 0;
  return {
    bytes: () => bytes,
    has: (part: Part) => parts.has(part),
    add(part: Part): void {
      parts.add(part);
      bytes += part.bytes;
    },
    remove(part: Part): void {
      if (parts.delete(part)) bytes -= part.bytes;
    },
    grow(part: Part, by: number): void {
      part.bytes += by;
      bytes += by;
    },
    largest: () => [...parts].reduce((most, part) => (part.bytes > most.bytes ? part : most)),
  };
}

export function unfinishedParts(limit = LIMIT_BYTES): Unfinished {
  const reading = countedParts();
  const complete = countedParts();
  /** Those of `reading` that wait for room, the first come first, each with its `proceed`. */
  const waiting = new Map<Part, () => void>();
  const admit = (part: Part, proceed: () => void): void => {
    waiting.delete(part);
    reading.remove(part);
    complete.add(part);
    proceed();
  };
  const admitWaiting = (): void => {
    for (const [part, proceed] of waiting) {
      if (complete.bytes() + part.bytes > limit) return;
      admit(part, proceed);
    }
  };
  const end = (part: Part): void => {
    waiting.delete(part);
    reading.remove(part);
    complete.remove(part);
    admitWaiting();
  };
  const refuseLargest = (): void => {
    const largest = reading.largest();
    end(largest);
    largest.refuse();
  };
  return {
    begin(refuse) {
      const part = { bytes: 0, refuse };
      reading.add(part);
      return {
        add(bytes) {
          if (!reading.has(part)) return;
          reading.grow(part, bytes);
          while (reading.bytes() > limit) refuseLargest();
        },
        complete(proceed) {
          if (!reading.has(part)) return;
          if (part.bytes <= SMALL_BYTES) {
            admit(part, proceed);
            return;
          }
          waiting.set(part, proceed);
          admitWaiting();
        },
        end: () => end(part),
      };
    },
  };
}
