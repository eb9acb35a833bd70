/** Ends the calls to a server that neither refuses connections nor answers. */
import type { ClientRequest } from 'node:http';

/** The server has not refused the connection, but does not answer. */
class SilentServerError extends Error {
  constructor(millis: number) {
    super(`the server has not answered for ${millis / 1000} s`);
  }
}

/** Whether the call failed with a SilentServerError. `error`: the error of the request, or an ApiError that has this error as its cause. */
export const isSilence = (error: unknown): boolean =>
  error instanceof SilentServerError || (error as Error).cause instanceof SilentServerError;

/**
 * Ends the call with a SilentServerError if the server is silent for `millis`. If `answersSoon` is true, the limit applies until the
 * response is complete, otherwise only until the TLS handshake is complete. Calls `answered`, perhaps repeatedly, when the response begins
 * or the call ends and, if `answersSoon` is false, when the handshake is complete.
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
  // The timeout of the request also covers the rest of the response, but begins only when the TCP connection exists.
  if (answersSoon) outgoing.setTimeout(millis, giveUp);
  else outgoing.once('socket', (socket) => (outgoing.reusedSocket ? end() : socket.once('secureConnect', end)));
  // A call that the agent cancels emits `close` without `error`; a call may also emit `error` after `response`.
  for (const event of ['response', 'error', 'close'] as const) outgoing.once(event, end);
}
