/**
 * The API server's requests to a node about Pods: the logs and the streams of their containers. The node implements this interface, and
 * the engine passes it to the API server.
 */

/** Query parameters of the log subresource. Source: PodLogOptions of v1.33. */
export interface LogOptions {
  follow?: boolean;
  previous?: boolean;
  timestamps?: boolean;
  sinceSeconds?: number;
  /** In RFC 3339 format. */
  sinceTime?: string;
  tailLines?: number;
  limitBytes?: number;
  stream?: 'All' | 'Stdout' | 'Stderr';
}

/** The requested streams of a process in a container. At least one is requested. With a tty, stderr is part of stdout. */
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

/**
 * The address at which the node serves streams: an HTTP URL on loopback that is valid for one connection within one minute. The client
 * must upgrade the connection to SPDY/3.1.
 */
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
   * Runs a command in the container. Like attach() and portForward(), rejects with an ApiError (500 InternalError) in upstream's wording
   * if the container has ended or the runtime refuses the call.
   */
  exec(
    pod: PodRef,
    container: string,
    options: StreamSelection & { command: readonly string[] },
    signal: AbortSignal,
  ): Promise<StreamEndpoint>;
  /**
   * Waits until a command of exec() may start. A caller must await this before it opens the last stream of the command, because the
   * command starts when all its streams are open. The caller must call the returned function once the command has written output or
   * exited, so that the next command can start.
   */
  execTurn(signal: AbortSignal): Promise<() => void>;
  /** Attaches to the streams of the container's first process. */
  attach(pod: PodRef, container: string, options: StreamSelection, signal: AbortSignal): Promise<StreamEndpoint>;
  /** Connects to ports of the Pod. With SPDY, each stream specifies its port, so `ports` may be empty. */
  portForward(pod: PodRef, ports: readonly number[], signal: AbortSignal): Promise<StreamEndpoint>;
}
