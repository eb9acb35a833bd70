/** The peer breaks the protocol of a stream, or uses a part of it that container streams do not use. The message explains it. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
}
