/** Serves the TCP connections of DNS clients, and limits their number. */
import type { Socket } from 'node:net';

/**
 * A connection is closed after this time without a whole query or a response that the client has read. Single bytes do not count, because a
 * client could hold a connection with them. Source: RFC 7766, section 6.2.3.
 */
const IDLE_MILLIS = 10_000;
/** Enough for a resolver that sends its A and AAAA queries together. */
const MAX_UNDER_WAY = 4;
const MAX_CONNECTIONS = 256;
const MAX_CONNECTIONS_OF_CLIENT = 64;

/** DNS over TCP requires the length in two bytes before the message. */
export function withLength(message: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}

/**
 * Answers the messages of the connection. Calls `failed` if `answer` rejects, and `used` for each whole query and for each response that
 * the client has read. The socket must allow half-open connections: a client that ends its half still gets the pending responses.
 */
export function serveConnection(
  socket: Socket,
  answer: (message: Buffer) => Promise<Buffer | undefined> | Buffer | undefined,
  failed: (error: Error) => void,
  used: () => void = () => undefined,
): void {
  let pending = Buffer.alloc(0);
  let underWay = 0;
  let ended = false;
  const idle = setTimeout(() => socket.destroy(), IDLE_MILLIS);
  const isUsed = (): void => {
    idle.refresh();
    used();
  };
  const nextMessage = (): Buffer | undefined => {
    const end = pending.length < 2 ? Number.POSITIVE_INFINITY : 2 + pending.readUInt16BE(0);
    if (pending.length < end) return undefined;
    const message = pending.subarray(2, end);
    pending = pending.subarray(end);
    return message;
  };
  /** Messages wait while the client does not read its responses, because unread responses would fill the memory. */
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
      isUsed();
      void respond(message);
    }
    socket.pause();
  };
  const respond = async (message: Buffer): Promise<void> => {
    try {
      const response = await answer(message);
      if (response !== undefined && socket.writable) socket.write(withLength(response), isUsed);
    } catch (error) {
      failed(error as Error);
    }
    underWay -= 1;
    take();
  };
  socket.on('close', () => clearTimeout(idle));
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

/**
 * Limits the number of open connections. A new connection replaces an idle one, so that clients that hold connections cannot keep others
 * out. Source: RFC 7766, sections 6.2.2 (limits per client) and 6.2.3 (idle connections may be closed under load).
 */
export class Connections {
  /** The connection that has been idle longest is the first. */
  readonly #clients = new Map<Socket, string>();
  readonly #counts = new Map<string, number>();

  /**
   * Adds a connection. At MAX_CONNECTIONS_OF_CLIENT, closes the idlest connection of this client; at MAX_CONNECTIONS, the idlest one of the
   * clients with the most connections.
   */
  add(socket: Socket, client: string): void {
    if (this.#count(client) >= MAX_CONNECTIONS_OF_CLIENT) this.#closeIdlest(new Set([client]));
    else if (this.#clients.size >= MAX_CONNECTIONS) this.#closeIdlest(this.#greediest());
    this.#clients.set(socket, client);
    this.#counts.set(client, this.#count(client) + 1);
    socket.once('close', () => this.#remove(socket));
  }

  used(socket: Socket): void {
    const client = this.#clients.get(socket);
    if (client === undefined) return;
    this.#clients.delete(socket);
    this.#clients.set(socket, client);
  }

  #count(client: string): number {
    return this.#counts.get(client) ?? 0;
  }

  #greediest(): Set<string> {
    const most = Math.max(...this.#counts.values());
    return new Set([...this.#counts.keys()].filter((client) => this.#count(client) === most));
  }

  #closeIdlest(clients: ReadonlySet<string>): void {
    for (const [socket, client] of this.#clients) {
      if (!clients.has(client)) continue;
      this.#remove(socket);
      socket.destroy();
      return;
    }
  }

  #remove(socket: Socket): void {
    const client = this.#clients.get(socket);
    if (client === undefined) return;
    this.#clients.delete(socket);
    const left = this.#count(client) - 1;
    if (left === 0) this.#counts.delete(client);
    else this.#counts.set(client, left);
  }
}
