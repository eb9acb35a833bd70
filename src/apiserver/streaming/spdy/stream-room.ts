/**
 * How many SPDY streams the container runtime has open for all clients together. containerd 1.6 keeps a thread of the operating system
 * for each connection that it forwards, and Go ends a process that has 10,000 threads.
 */
export interface StreamRoom {
  /** Counts the streams of a connection, until the function is called that it returns. */
  enter(count: () => number): () => void;
  isFull(): boolean;
}

export function createStreamRoom(limit: number): StreamRoom {
  const connections = new Set<() => number>();
  return {
    enter(count) {
      connections.add(count);
      return () => void connections.delete(count);
    },
    isFull() {
      let open = 0;
      for (const count of connections) open += count();
      return open >= limit;
    },
  };
}
