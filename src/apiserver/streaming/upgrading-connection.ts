/** Responses on a connection that Node.js hands over because its client requests an upgrade: refusals are still sent as HTTP. */
import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Upgrade } from '../http/exchange.ts';

export interface UpgradingConnection {
  socket: Socket;
  head: Buffer;
}

/** Creates a response on the connection. The connection ends after the response. */
export function answerOn(request: IncomingMessage, socket: Socket): ServerResponse {
  socket.on('error', () => undefined);
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  response.once('finish', () => {
    response.detachSocket(socket);
    socket.destroySoon();
  });
  return response;
}

/** `take` may be called once, and only before the response has begun. */
export function takeable(response: ServerResponse, { socket, head }: UpgradingConnection, taken: () => void): Upgrade {
  return {
    take() {
      response.detachSocket(socket);
      taken();
      return { socket, head };
    },
  };
}
