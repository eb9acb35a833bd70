/**
 * Counts the bytes of request bodies and WebSocket messages that are being read, and those of bodies whose requests are not answered
 * yet. Those of all clients are bounded.
 */

/** The limit of all of them together. */
const LIMIT_BYTES = 64 * 1024 * 1024;

export interface Unfinished {
  /** `refuse` is called if all parts together are larger than the limit and this one is the largest. The part has then ended. */
  begin(refuse: () => void): UnfinishedPart;
}

export interface UnfinishedPart {
  /** Has no effect after the part has ended. */
  add(bytes: number): void;
  /** All of it has been read: it counts until its end, and is not refused any more. */
  complete(): void;
  /** May be called again. */
  end(): void;
}

interface Part {
  bytes: number;
  refuse(): void;
}

export function unfinishedParts(limit = LIMIT_BYTES): Unfinished {
  const parts = new Set<Part>();
  const complete = new Set<Part>();
  let bytesOfAll = 0;
  const end = (part: Part): void => {
    if (parts.delete(part) || complete.delete(part)) bytesOfAll -= part.bytes;
  };
  const refuseLargest = (): void => {
    const largest = [...parts].reduce((most, part) => (part.bytes > most.bytes ? part : most));
    end(largest);
    largest.refuse();
  };
  return {
    begin(refuse) {
      const part = { bytes: 0, refuse };
      parts.add(part);
      return {
        add(bytes) {
          if (!parts.has(part)) return;
          part.bytes += bytes;
          bytesOfAll += bytes;
          while (bytesOfAll > limit && parts.size > 0) refuseLargest();
        },
        complete() {
          if (parts.delete(part)) complete.add(part);
        },
        end: () => end(part),
      };
    },
  };
}
