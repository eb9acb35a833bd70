/**
 * Limits the port-forward streams that the container runtime has open for all clients together. containerd 1.6 keeps an operating system
 * thread for each forwarded connection, which has two streams, and Go terminates a process that needs more than 10,000 threads.
 */
export interface StreamRoom {
  /** `count` returns the number of open streams of a connection. Returns a function that removes the connection. */
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
