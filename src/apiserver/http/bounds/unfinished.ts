/**
 * Counts the bytes of request bodies and WebSocket messages that are being read, and those of bodies that have been read and whose
 * requests are not answered yet. The bytes of all clients are bounded, each of the two kinds for itself.
 */

/** The limit of all parts that are being read, and that of all complete ones. */
const LIMIT_BYTES = 64 * 1024 * 1024;
/** Up to this size a complete part does not wait for room: large bodies do not hold up small ones. */
const SMALL_BYTES = 64 * 1024;
/** How many small parts are complete at a time: 64 MiB together. Upstream carries out 200 mutating requests at a time. */
const MAX_SMALL = 1024;

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
   * All of it has been read. Calls `proceed` once there is room for it among the complete parts. A small one waits for no large
   * ones. From then on it is not refused, and counts there until its end. Until then it counts among those that are being read.
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

/** Complete parts, and those that wait until there is room for them. */
function completeParts(hasRoom: (parts: ReturnType<typeof countedParts>, part: Part) => boolean) {
  const parts = countedParts();
  /** The first come first, each with what is called once there is room. */
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
