/** The other side of a stream does not keep to its protocol, or to what streams of containers use of it. The message says how. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
}
