/**
 * What the API server requests from a node besides objects: logs and streams of a Pod's containers.
 * The node implements this interface, and the engine passes it to the API server.
 */

/** Query parameters of the log subresource. Source: PodLogOptions of v1.33. */
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

/** The requested streams of a container's process; at least one. With a tty, stderr is part of stdout. */
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

/** Where the node serves a stream: a loopback HTTP URL, upgraded to SPDY/3.1. Valid for one connection within a minute. */
export interface StreamEndpoint {
  url: string;
}

export interface NodeConnection {
  /**
   * Yields the container's log up to its current end, or, with `follow`, until the container exits or `signal` aborts.
   * Rejects with an ApiError (400 BadRequest) in upstream's wording if the container has no log to read.
   */
  logs(pod: PodRef, container: string, options: LogOptions, signal: AbortSignal): AsyncIterable<Uint8Array>;
  /**
   * Runs a command in the current run of the container. Rejects, like attach() and portForward(), with an ApiError (500
   * InternalError) in upstream's wording if that run has ended or the runtime refuses.
   */
  exec(
    pod: PodRef,
    container: string,
    options: StreamSelection & { command: readonly string[] },
    signal: AbortSignal,
  ): Promise<StreamEndpoint>;
  /**
   * Waits until a command of exec() may start. Await it before opening the last stream, because the command starts when all its
   * streams are open. Call the returned function once the command has written output or exited, so that the next can start.
   */
  execTurn(signal: AbortSignal): Promise<() => void>;
  /** The streams of the container's own process. */
  attach(pod: PodRef, container: string, options: StreamSelection, signal: AbortSignal): Promise<StreamEndpoint>;
  /** Connections to ports of the Pod. With SPDY each stream names its port, so `ports` may be empty. */
  portForward(pod: PodRef, ports: readonly number[], signal: AbortSignal): Promise<StreamEndpoint>;
}
