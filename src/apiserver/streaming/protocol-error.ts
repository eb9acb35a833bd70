/** Thrown if a peer breaks the protocol of a stream, or uses a part of the protocol that container streams do not need. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
}
