/**
 * What the API server asks of a node, beside the objects: logs and streams of a Pod's containers.
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

/** Which streams of a container's process are wanted; at least one. With a tty there is no stderr of its own. */
export interface StreamSelection {
  stdin: boolean;
  stdout: boolean;
  stderr: boolean;
  tty: boolean;
}

export interface PodRef {
  namespace: string;
  name: string;
  uid: string;
}

/** Where the node serves streams: a URL on loopback that is good for one connection, within a minute: http, upgraded to SPDY/3.1. */
export interface StreamEndpoint {
  url: string;
}

export interface NodeConnection {
  /**
   * Chunks of the container's log until its end, or, with follow, until the container ends or `signal` aborts.
   * Rejects with an ApiError (400 BadRequest) with upstream's wording where the container has no log to read.
   */
  logs(pod: PodRef, container: string, options: LogOptions, signal: AbortSignal): AsyncIterable<Uint8Array>;
  /**
   * Runs a command in the container's current run. Rejects, as attach() and portForward() do, with an ApiError
   * (500 InternalError) with upstream's wording where that run does not live or the runtime refuses.
   */
  exec(
    pod: PodRef,
    container: string,
    options: StreamSelection & { command: readonly string[] },
    signal: AbortSignal,
  ): Promise<StreamEndpoint>;
  /**
   * To be awaited before a command of exec() may start, which it does when all its streams are open. What it resolves with
   * is to be called once the command has written something or has ended: others then start.
   */
  execTurn(signal: AbortSignal): Promise<() => void>;
  /** The streams of the container's own process. */
  attach(pod: PodRef, container: string, options: StreamSelection, signal: AbortSignal): Promise<StreamEndpoint>;
  /** Connections to ports inside the Pod; with SPDY each stream names its port, so `ports` may be empty. */
  portForward(pod: PodRef, ports: readonly number[], signal: AbortSignal): Promise<StreamEndpoint>;
}
