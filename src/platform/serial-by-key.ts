/** Runs operations with the same key one after another. Operations with different keys may run at the same time. */
export interface SerialByKey {
  /** Starts `operation` when all earlier operations with the key have ended, successfully or not. Settles like `operation`. */
  run<T>(key: string, operation: () => Promise<T>): Promise<T>;
  /** Resolves when all operations added so far with the key have ended. Returns undefined if all have ended. */
  pending(key: string): Promise<void> | undefined;
}

export function createSerialByKey(): SerialByKey {
  /** When the last operation with the key has ended. A key without unfinished operations is absent. */
  const ends = new Map<string, Promise<void>>();
  return {
    run(key, operation) {
      const result = (ends.get(key) ?? Promise.resolve()).then(operation);
      const end = result.then(
        () => undefined,
        () => undefined,
      );
      ends.set(key, end);
      void end.then(() => {
        if (ends.get(key) === end) ends.delete(key);
      });
      return result;
    },
    pending: (key) => ends.get(key),
  };
}
