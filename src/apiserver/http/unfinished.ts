/** Bytes of clients that wait to become a whole: bodies of requests, messages of WebSockets. Those of all together are bounded. */

/** The limit of all of them together. */
const LIMIT_BYTES = 64 * 1024 * 1024;

export interface Unfinished {
  /** `refuse` is called when all parts together are larger than the limit, and this one began first. It must end the part. */
  begin(refuse: () => void): UnfinishedPart;
}

export interface UnfinishedPart {
  add(bytes: number): void;
  /** May be called again. */
  end(): void;
}

export function unfinishedParts(limit = LIMIT_BYTES): Unfinished {
  /** In the order in which the parts began. */
  const refusals = new Set<() => void>();
  let bytesOfAll = 0;
  return {
    begin(refuse) {
      let bytes = 0;
      // Each part has a function of its own.
      const refuseThis = (): void => refuse();
      refusals.add(refuseThis);
      return {
        add(more) {
          bytes += more;
          bytesOfAll += more;
          for (const first of refusals) if (bytesOfAll > limit) first();
        },
        end() {
          refusals.delete(refuseThis);
          bytesOfAll -= bytes;
          bytes = 0;
        },
      };
    },
  };
}
