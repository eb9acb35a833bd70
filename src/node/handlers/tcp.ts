import { connect } from 'node:net';
import { DeadlineExceeded, dialFailure, HandlerFailure, joinHostPort } from './failure.ts';

/**
 * Opens a TCP connection and closes it. Rejects with a HandlerFailure if the connection cannot be opened or the signal aborts with
 * DeadlineExceeded, with the reason of the signal if it aborts for another cause, and with other errors if the node caused them.
 */
export function tcpConnect(host: string, port: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const socket = connect({ host, port });
    const settle = (outcome: () => void): void => {
      signal.removeEventListener('abort', abort);
      socket.destroy();
      outcome();
    };
    const abort = (): void => {
      const late = signal.reason instanceof DeadlineExceeded;
      settle(() =>
        reject(late ? new HandlerFailure(`dial tcp ${joinHostPort(host, port)}: i/o timeout`) : signal.reason),
      );
    };
    signal.addEventListener('abort', abort, { once: true });
    socket.once('connect', () => settle(resolve));
    socket.on('error', (error) => {
      const failure = dialFailure(error, host, port);
      settle(() => reject(failure === undefined ? error : new HandlerFailure(failure)));
    });
  });
}
