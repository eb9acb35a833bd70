/** Counts the bytes of request bodies and WebSocket messages that are not complete yet. Those of all clients are bounded. */

/** The limit of all of them together. */
const LIMIT_BYTES = 64 * 1024 * 1024;

export interface Unfinished {
  /** `refuse` is called where all parts together are larger than the limit and this one is the largest. It must end the part. */
  begin(refuse: () => void): UnfinishedPart;
}

export interface UnfinishedPart {
  add(bytes: number): void;
  /** May be called again. */
  end(): void;
}

export function unfinishedParts(limit = LIMIT_BYTES): Unfinished {
  const parts = new Set<{ bytes: number; refuse: () => void }>();
  let bytesOfAll = 0;
  const refuseLargest = (): void => {
    let largest: { bytes: number; refuse: () => void } | undefined;
    for (const part of parts) if (part.bytes > (largest?.bytes ?? 0)) largest = part;
    largest?.refuse();
  };
  return {
    begin(refuse) {
      const part = { bytes: 0, refuse };
      parts.add(part);
      return {
        add(bytes) {
          part.bytes += bytes;
          bytesOfAll += bytes;
          while (bytesOfAll > limit) refuseLargest();
        },
        end() {
          parts.delete(part);
          bytesOfAll -= part.bytes;
          part.bytes = 0;
        },
      };
    },
  };
}
