/**
 * Counts the streams that a client has reset but that the container runtime still keeps.
 *
 * containerd pairs the two streams of a forwarded connection, error and data, by their request ID. It waits 30 s for the second stream,
 * even if the client has reset the first stream. When containerd has both streams, it ends the error stream after it has closed the
 * connection. So a reset data stream that has an error stream is not counted: the open error stream already counts for the connection.
 * kubectl resets the data stream of every connection.
 * Source: containerd 1.6 pkg/cri/streaming/portforward/httpstream.go.
 */

/** Source: DefaultConfig.StreamCreationTimeout of containerd's streaming server. */
const KEPT_MILLIS = 30_000;

export interface JoinedStream {
  readonly type: string;
  readonly request: string;
  /** Whether the other stream with the same request ID has been opened. */
  joined: boolean;
}

export interface ResetStreams {
  opened(streamId: number, headers: ReadonlyMap<string, string>): JoinedStream;
  reset(stream: JoinedStream): void;
  /** Must be called when the stream has ended without a reset by the client. The runtime does not keep such a stream. */
  ended(stream: JoinedStream): void;
  count(): number;
}

export function resetStreams(): ResetStreams {
  /** The streams whose counterpart with the same request ID has not been opened, by request ID. */
  const single = new Map<string, JoinedStream>();
  /** Oldest reset first. The stream stops counting when performance.now() reaches `until`. */
  const kept: { stream: JoinedStream; until: number }[] = [];
  const ended = (stream: JoinedStream): void => {
    if (single.get(stream.request) === stream) single.delete(stream.request);
  };
  return {
    opened(streamId, headers) {
      const type = headers.get('streamtype') ?? '';
      // Old clients send no request ID, so derive it from the stream ID, as containerd does.
      const request = headers.get('requestid') || String(type === 'data' ? streamId - 2 : streamId);
      const stream: JoinedStream = { type, request, joined: false };
      const other = single.get(request);
      if (other === undefined) single.set(request, stream);
      else if (other.type !== type) {
        other.joined = true;
        stream.joined = true;
        single.delete(request);
      }
      return stream;
    },
    reset(stream) {
      if (stream.joined && stream.type === 'data') return;
      kept.push({ stream, until: performance.now() + KEPT_MILLIS });
    },
    ended,
    count() {
      const now = performance.now();
      for (let first = kept[0]; first !== undefined && first.until <= now; first = kept[0]) {
        ended(first.stream);
        kept.shift();
      }
      return kept.length;
    },
  };
}
