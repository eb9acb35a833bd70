/** Serves one TCP connection of a DNS client, on which each message is preceded by its length. */
import type { Socket } from 'node:net';
import type { Log } from '../platform/platform.ts';
import { withLength } from './dns-forward.ts';

const IDLE_MILLIS = 10_000;
/** Maximum number of concurrent queries of one connection, enough for a resolver that sends its A and AAAA queries together. */
const MAX_UNDER_WAY = 4;

/** The socket must allow half-open connections, so that a client that ends its half still gets the pending responses. */
export function serveConnection(
  socket: Socket,
  answer: (message: Buffer, transport: 'tcp') => Promise<Buffer | undefined>,
  log: Log,
): void {
  let pending = Buffer.alloc(0);
  let underWay = 0;
  let ended = false;
  const nextMessage = (): Buffer | undefined => {
    const end = pending.length < 2 ? Number.POSITIVE_INFINITY : 2 + pending.readUInt16BE(0);
    if (pending.length < end) return undefined;
    const message = pending.subarray(2, end);
    pending = pending.subarray(end);
    return message;
  };
  /**
   * Returns whether the next message may be processed. Messages wait while the client does not read its responses, because unread
   * responses would fill the memory.
   */
  const mayTake = (): boolean => underWay < MAX_UNDER_WAY && !socket.writableNeedDrain && !socket.destroyed;
  const take = (): void => {
    while (mayTake()) {
      const message = nextMessage();
      if (message === undefined) {
        if (ended && underWay === 0) socket.end();
        else socket.resume();
        return;
      }
      underWay += 1;
      void respond(message);
    }
    socket.pause();
  };
  const respond = async (message: Buffer): Promise<void> => {
    try {
      const response = await answer(message, 'tcp');
      if (response !== undefined && socket.writable) socket.write(withLength(response));
    } catch (error) {
      log.warn('cannot answer a DNS query', { error: (error as Error).message });
    }
    underWay -= 1;
    take();
  };
  socket.setTimeout(IDLE_MILLIS, () => socket.destroy());
  socket.on('error', () => socket.destroy());
  socket.on('drain', take);
  socket.on('data', (chunk) => {
    pending = Buffer.concat([pending, chunk]);
    take();
  });
  socket.on('end', () => {
    ended = true;
    take();
  });
}
