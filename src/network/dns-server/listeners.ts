/** The UDP and TCP sockets of the DNS server. A process can pass them to its successor, so that no query is lost. */
import { createSocket, type RemoteInfo, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import type { Responder } from './responder.ts';
import { Connections, serveConnection } from './tcp.ts';

export interface Listener {
  address: string;
  udp: UdpSocket;
  tcp: Server;
}

/** Opens the sockets; `port` 0 chooses a free one. Rejects with the error of the system call. */
export async function openListener(address: string, port: number): Promise<Listener> {
  const tcp = createServer({ allowHalfOpen: true });
  const udp = createSocket({ type: address.includes(':') ? 'udp6' : 'udp4', lookup: alreadyNumeric });
  try {
    tcp.listen(port, address);
    await once(tcp, 'listening');
    // once() precedes bind(), because with alreadyNumeric() the event may be emitted within bind().
    const isBound = once(udp, 'listening');
    udp.bind(portOf(tcp), address);
    await isBound;
    return { address, udp, tcp };
  } catch (error) {
    tcp.close();
    udp.close();
    throw error;
  }
}

export const portOf = (tcp: Server): number => (tcp.address() as { port: number }).port;

type Lookup = NonNullable<
  Parameters<typeof createSocket>[0] extends infer T ? Extract<T, { lookup?: unknown }>['lookup'] : never
>;

/** A `lookup` for UDP sockets whose peers are numeric addresses. */
const alreadyNumeric: Lookup = (host, _, callback) => callback(null, host, host.includes(':') ? 6 : 4);

export interface Serving {
  /** Accepts no more connections and queries. Existing connections are served until they end. */
  close(): void;
}

/** Answers the queries that the sockets receive. Calls `failed` for unexpected errors. */
export function serve({ udp, tcp }: Listener, answer: Responder, failed: (error: Error) => void): Serving {
  udp.on('error', failed);
  tcp.on('error', failed);
  let isClosed = false;
  const send = (response: Buffer | undefined, peer: RemoteInfo): void => {
    if (response !== undefined && !isClosed) udp.send(response, peer.port, peer.address);
  };
  udp.on('message', (message, peer) => {
    try {
      const response = answer(message, 'udp', peer.address);
      if (response instanceof Promise) response.then((late) => send(late, peer)).catch(failed);
      else send(response, peer);
    } catch (error) {
      failed(error as Error);
    }
  });
  const connections = new Connections();
  tcp.on('connection', (socket: Socket) => {
    const client = socket.remoteAddress ?? '';
    connections.add(socket, client);
    serveConnection(
      socket,
      (message) => answer(message, 'tcp', client),
      failed,
      () => connections.used(socket),
    );
  });
  return {
    close() {
      isClosed = true;
      udp.close();
      tcp.close();
    },
  };
}
