/**
 * Counts the bytes of request bodies and WebSocket messages that are being read, and of bodies that have been read but whose requests
 * are still being handled. Each of the two sums over all clients is bounded.
 */

/** The limit on all parts that are being read, and also on all complete large ones. */
const LIMIT_BYTES = 64 * 1024 * 1024;
/** A complete part up to this size does not wait for room, so large bodies do not delay small ones. */
const SMALL_BYTES = 64 * 1024;
/** The limit on complete small parts: 64 MiB together. Upstream runs 200 mutating requests at a time. */
const MAX_SMALL = 1024;

export interface Unfinished {
  /**
   * `refuse` is called if all parts that are being read are together larger than the limit and this one is the largest. The part
   * has ended by then.
   */
  begin(refuse: () => void): UnfinishedPart;
}

export interface UnfinishedPart {
  /** Adds bytes. Has no effect after the part has ended. */
  add(bytes: number): void;
  /**
   * Marks the part as read. Calls `proceed` once there is room among the complete parts; a small part does not wait for large ones.
   * From then on the part is not refused, and counts as complete until its end. Until then it counts as being read.
   */
  complete(proceed: () => void): void;
  /** Idempotent. */
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
    count: () => parts.size,
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

/** The complete parts, and a queue of those that wait for room. */
function completeParts(hasRoom: (parts: ReturnType<typeof countedParts>, part: Part) => boolean) {
  const parts = countedParts();
  /** In order of arrival, each with the callback for when there is room. */
  const waiting = new Map<Part, () => void>();
  const admitWaiting = (): void => {
    for (const [part, proceed] of waiting) {
      if (!hasRoom(parts, part)) return;
      waiting.delete(part);
      parts.add(part);
      proceed();
    }
  };
  return {
    add(part: Part, proceed: () => void): void {
      waiting.set(part, proceed);
      admitWaiting();
    },
    remove(part: Part): void {
      waiting.delete(part);
      parts.remove(part);
      admitWaiting();
    },
  };
}

export function unfinishedParts(limit = LIMIT_BYTES, maxSmall = MAX_SMALL): Unfinished {
  const reading = countedParts();
  const small = completeParts(({ count }) => count() < maxSmall);
  const large = completeParts(({ bytes }, part) => bytes() + part.bytes <= limit);
  const end = (part: Part): void => {
    reading.remove(part);
    small.remove(part);
    large.remove(part);
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
          (part.bytes <= SMALL_BYTES ? small : large).add(part, () => {
            reading.remove(part);
            proceed();
          });
        },
        end: () => end(part),
      };
    },
  };
}
