/** Runs operations with the same key one after another, and operations with different keys at the same time. */
export interface SerialByKey {
  /** Starts the operation when all earlier ones with the key have ended, successfully or not. */
  run<T>(key: string, operation: () => Promise<T>): Promise<T>;
  /** Resolves when the operations with the key so far have ended, and never rejects. Undefined if there are none. */
  pending(key: string): Promise<void> | undefined;
}

export function createSerialByKey(): SerialByKey {
  /** The end of the last operation, by key. */
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
