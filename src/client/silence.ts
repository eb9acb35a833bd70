/** Ends the calls to a server that neither refuses connections nor answers. */
import type { ClientRequest } from 'node:http';

/** The server has not refused the connection, but does not answer. */
class SilentServerError extends Error {
  constructor(millis: number) {
    super(`the server has not answered for ${millis / 1000} s`);
  }
}

/** Whether the call failed because the server neither refused the connection nor answered. `error`: also one that a call rejects with. */
export const isSilence = (error: unknown): boolean =>
  error instanceof SilentServerError || (error as Error).cause instanceof SilentServerError;

/**
 * Ends the call if the server is silent for `millis`: until its response is complete if `answersSoon`, else until the TLS handshake is.
 * Calls `answered`, perhaps repeatedly, when the response begins, the awaited handshake is complete, or the call ends.
 */
export function limitSilence(
  outgoing: ClientRequest,
  millis: number,
  answersSoon: boolean,
  answered?: () => void,
): void {
  const giveUp = (): void => void outgoing.destroy(new SilentServerError(millis));
  const timer = setTimeout(giveUp, millis);
  const end = (): void => {
    clearTimeout(timer);
    answered?.();
  };
  // The timeout of the request covers its response, but begins only after the TLS handshake.
  if (answersSoon) outgoing.setTimeout(millis, giveUp);
  else outgoing.once('socket', (socket) => (outgoing.reusedSocket ? end() : socket.once('secureConnect', end)));
  // A call that the agent cancels has no error, and one with a response may have an error later.
  for (const event of ['response', 'error', 'close'] as const) outgoing.once(event, end);
}
