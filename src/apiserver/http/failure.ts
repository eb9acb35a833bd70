import type { Status } from '../../machinery/meta.ts';
import { ApiError, internalError } from '../../machinery/status.ts';
import { failureRepresentation } from '../representation/representation.ts';
import { sendParts } from './answers.ts';
import type { ServerContext } from './context.ts';
import type { Exchange } from './exchange.ts';
import { discardBody } from './unread-body.ts';

const UNEXPECTED = 'an unexpected failure was logged';

/**
 * Responds with the Status of an ApiError. Other failures are logged, and the client gets 500 InternalError without details. If the
 * response has already begun, closes the connection instead.
 */
export async function sendFailure(
  { log, timers }: Pick<ServerContext, 'log' | 'timers'>,
  exchange: Exchange,
  error: unknown,
): Promise<void> {
  const { response, method, path, signal, auditing } = exchange;
  if (error instanceof ApiError) auditing?.failed(error.status);
  if (signal.aborted && response.destroyed) return;
  let failure = error;
  if (!(error instanceof ApiError)) {
    auditing?.panicked(error);
    log.error('request failed', { method, path, error: (error as Error)?.stack ?? String(error) });
    failure = internalError(UNEXPECTED);
  }
  if (response.headersSent || response.socket === null) {
    // The response has begun or is a stream, so only a broken connection shows the client that the request failed.
    response.destroy();
    return;
  }
  const { status } = failure as ApiError;
  const retryAfter = status.details?.retryAfterSeconds;
  if (retryAfter !== undefined) response.setHeader('Retry-After', retryAfter);
  const { complete, httpVersionMajor } = exchange.request;
  const isLast = status.code === 413 || status.code === 429 || response.getHeader('Connection') === 'close';
  // In HTTP/2, the response ends only its stream, so the rest of the body need not be discarded.
  if (isLast && !complete && httpVersionMajor < 2) return discardBody(exchange, status, timers);
  try {
    await sendStatus(exchange, status);
  } catch (cause) {
    if (response.headersSent) throw cause;
    log.error('cannot send the response to a failed request', {
      method,
      path,
      error: (cause as Error)?.stack ?? String(cause),
    });
    await sendStatus(exchange, internalError(UNEXPECTED).status);
  }
}

function sendStatus(exchange: Exchange, status: Status): Promise<void> {
  const { contentType, object } = failureRepresentation(exchange.request.headers.accept);
  return sendParts(exchange, status.code ?? 500, contentType, object(status));
}
