/** The API server's requests to a node about Pods. The node implements this interface, and the engine passes it to the API server. */

/** Absent options have upstream's defaults. Source: PodLogOptions of v1.33. */
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

/** If `tty` is true, the process has a terminal, and stderr is part of stdout. */
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
 * The address at which the node serves streams: an HTTP URL on loopback that is valid for one connection within one minute. The API server
 * must upgrade the connection to SPDY/3.1, or to a WebSocket with a subprotocol older than v5.channel.k8s.io.
 */
export interface StreamEndpoint {
  url: string;
}

export interface NodeConnection {
  /**
   * Yields the container's log up to the current end of the log or, with `follow`, until the container exits. Stops early when `signal`
   * aborts. The iteration throws an ApiError (400 BadRequest) in upstream's wording if the container has no log to read.
   */
  logs(pod: PodRef, container: string, options: LogOptions, signal: AbortSignal): AsyncIterable<Uint8Array>;
  /**
   * Prepares a command in the container. The command starts when all its streams are open. Like attach() and portForward(), rejects with an
   * ApiError (500 InternalError) in upstream's wording if the container or sandbox does not run, or if the runtime refuses the call.
   */
  exec(
    pod: PodRef,
    container: string,
    options: StreamSelection & { command: readonly string[] },
    signal: AbortSignal,
  ): Promise<StreamEndpoint>;
  /**
   * Waits until a command of exec() may start. A caller must await this before it opens the last stream of the command, and must call the
   * returned function once the command has written output or exited, so that the next command can start without delay. Rejects when
   * `signal` aborts.
   */
  execTurn(signal: AbortSignal): Promise<() => void>;
  attach(pod: PodRef, container: string, options: StreamSelection, signal: AbortSignal): Promise<StreamEndpoint>;
  /** With SPDY, each stream specifies its port, so `ports` may be empty. */
  portForward(pod: PodRef, ports: readonly number[], signal: AbortSignal): Promise<StreamEndpoint>;
}
