/**
 * What the API server asks of a node, beside the objects: the streams of a Pod's containers.
 * The node implements it, the command line hands it to the API server.
 */

/** Query of the log subresource. Source: v1.33 PodLogOptions. */
export interface LogOptions {
  follow?: boolean;
  previous?: boolean;
  timestamps?: boolean;
  sinceSeconds?: number;
  /** RFC 3339 */
  sinceTime?: string;
  tailLines?: number;
  limitBytes?: number;
  stream?: 'All' | 'Stdout' | 'Stderr';
}

export interface NodeConnection {
  /**
   * Chunks of the container's log until its end, or, with follow, until the container ends or `signal` aborts.
   * Rejects with an ApiError (400 BadRequest) with upstream's wording where the container has no log to read.
   */
  logs(
    pod: { namespace: string; name: string; uid: string },
    container: string,
    options: LogOptions,
    signal: AbortSignal,
  ): AsyncIterable<Uint8Array>;
}
