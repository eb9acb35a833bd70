/**
 * Sends the response to a watch or a request for a log as messages of a WebSocket instead of a body.
 * Source: wsstream and WatchServer.HandleWS of v1.33.
 *
 * Invariants:
 *  1. Messages that wait for the client count like the waiting bytes of a body (outgoing.ts).
 *  2. The messages of the client are read and dropped, one at a time.
 */
import { Writable } from 'node:stream';
import type { WebSocket } from 'ws';
import type { ServerContext } from '../http/context.ts';
import type { Exchange, Upgrade } from '../http/exchange.ts';
import { countMessages } from './messages.ts';
import { upgradeKind } from './upgrading-connection.ts';
import { acceptWebSocket, checkHandshake } from './web-socket.ts';

const NORMAL_CLOSURE = 1000;

/** Accepts the WebSocket with the subprotocol. From then on, each write to exchange.outgoing is sent as a message. */
export type OpenMessages = (protocol: string | undefined) => Promise<void>;

/** Returns undefined if the client requests no WebSocket. Throws 400 BadRequest if the client's handshake is not valid. */
export function messagesOf({ unfinished }: ServerContext, exchange: Exchange): OpenMessages | undefined {
  const { request, upgrade } = exchange;
  if (upgrade === undefined || upgradeKind(request) !== 'websocket') return undefined;
  checkHandshake(request);
  return async (protocol) => {
    const { socket, webSocket } = await accept(exchange, upgrade, protocol);
    countMessages(webSocket, socket, unfinished, exchange.user.name);
    webSocket.on('message', () => webSocket.resume());
    exchange.outgoing.redirect(messageOutput(webSocket));
    webSocket.resume();
  };
}

async function accept({ request }: Exchange, upgrade: Upgrade, protocol: string | undefined) {
  const { socket, head } = upgrade.takeToAnswer();
  return { socket, webSocket: await acceptWebSocket(request, socket, head, protocol) };
}

/** Sends each write as a message: a string as text, bytes as binary. The end of the stream closes the WebSocket normally. */
function messageOutput(webSocket: WebSocket): Writable {
  const output = new Writable({
    decodeStrings: false,
    write: (message, _encoding, done) => webSocket.send(message, done),
    final(done) {
      webSocket.once('close', () => done());
      webSocket.close(NORMAL_CLOSURE);
    },
    destroy(error, done) {
      webSocket.terminate();
      done(error);
    },
  });
  // An error means that the client has disconnected or has broken the protocol, which ends the WebSocket.
  output.on('error', () => undefined);
  webSocket.on('error', () => undefined).once('close', () => output.destroy());
  return output;
}
