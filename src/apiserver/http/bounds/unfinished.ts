/**
 * Counts the bytes of request bodies and WebSocket messages, called parts. A part is first being read. A body that has been read is
 * complete while its request is handled, except while the request waits, for example in an admission plugin (see waits.ts). Over all
 * clients, the bytes of the parts that are being read are bounded, and so are the bytes of the complete parts.
 */

/** The limit on the bytes of all parts that are being read, and also on the bytes of all complete large parts. */
const LIMIT_BYTES = 64 * 1024 * 1024;
/** Small parts do not wait for room among large parts, so that large bodies do not delay them. */
const SMALL_BYTES = 64 * 1024;
/** Complete small parts take at most 64 MiB together. */
const MAX_SMALL = 1024;

export interface Unfinished {
  /**
   * Begins a part of the user `owner`. While the parts that are being read exceed the limit, the largest part of the user with the most
   * bytes ends, and its `refuse` is called.
   */
  begin(refuse: () => void, owner?: string): UnfinishedPart;
  /**
   * Returns a complete part for a body that has arrived as a whole. Returns undefined if there is no room now, or if other parts wait for
   * room.
   */
  completed(bytes: number, owner?: string): CompletePart | undefined;
}

export interface UnfinishedPart {
  /** Has no effect on a complete part, or on a part that has ended. */
  add(bytes: number): void;
  /** Calls `proceed` when there is room among the complete parts. Until that call, the part counts as being read and may be refused. */
  complete(proceed: (part: CompletePart) => void): void;
  end(): void;
}

/** A complete part, which can make room for others while its request waits. */
export interface CompletePart {
  readonly bytes: number;
  /** Gives up the room of the part. */
  leave(): void;
  /** After leave(), resolves when the part has room again. Never resolves after end(). */
  return(): Promise<void>;
  end(): void;
}

interface Part {
  readonly owner: string;
  bytes: number;
  refuse(): void;
}

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
    largest(): Part {
      const totals = new Map<string, number>();
      for (const part of parts) totals.set(part.owner, (totals.get(part.owner) ?? 0) + part.bytes);
      const [owner] = [...totals].reduce((most, total) => (total[1] > most[1] ? total : most));
      return [...parts]
        .filter((part) => part.owner === owner)
        .reduce((most, part) => (part.bytes > most.bytes ? part : most));
    },
  };
}

function completeParts(hasRoom: (parts: ReturnType<typeof countedParts>, part: Part) => boolean) {
  const parts = countedParts();
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
    /** Returns false if the part would have to wait for room. */
    addNow(part: Part): boolean {
      const isAdded = waiting.size === 0 && hasRoom(parts, part);
      if (isAdded) parts.add(part);
      return isAdded;
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
  const setOf = (part: Part) => (part.bytes <= SMALL_BYTES ? small : large);
  const end = (part: Part): void => {
    reading.remove(part);
    small.remove(part);
    large.remove(part);
  };
  const completePart = (part: Part): CompletePart => {
    let ended = false;
    return {
      bytes: part.bytes,
      leave: () => setOf(part).remove(part),
      return: () =>
        new Promise((resolve) => {
          if (!ended) setOf(part).add(part, resolve);
        }),
      end() {
        ended = true;
        end(part);
      },
    };
  };
  const refuseLargest = (): void => {
    const largest = reading.largest();
    end(largest);
    largest.refuse();
  };
  return {
    begin(refuse, owner = '') {
      const part = { owner, bytes: 0, refuse };
      reading.add(part);
      return {
        add(bytes) {
          if (!reading.has(part)) return;
          reading.grow(part, bytes);
          while (reading.bytes() > limit) refuseLargest();
        },
        complete(proceed) {
          if (!reading.has(part)) return;
          setOf(part).add(part, () => {
            reading.remove(part);
            proceed(completePart(part));
          });
        },
        end: () => end(part),
      };
    },
    completed(bytes, owner = '') {
      const part = { owner, bytes, refuse: () => undefined };
      return setOf(part).addNow(part) ? completePart(part) : undefined;
    },
  };
}
