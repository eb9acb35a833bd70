import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { decode, encode, type Packet } from 'dns-packet';
import { serveConnection } from './tcp.ts';

export interface NameServer {
  port: number;
  /** Such as `udp A example.com`. */
  asked: string[];
  close(): void;
}

/** The name server does not respond where `reply` returns undefined. */
export async function startNameServer(
  reply: (query: Packet, transport: 'udp' | 'tcp') => Partial<Packet> | Buffer | undefined,
  address = '127.0.0.1',
  port = 0,
): Promise<NameServer> {
  const asked: string[] = [];
  const answer = (message: Buffer, transport: 'udp' | 'tcp'): Buffer | undefined => {
    const query = decode(message);
    const [first] = query.questions ?? [];
    asked.push(`${transport} ${first?.type} ${first?.name}`);
    const response = reply(query, transport);
    if (response === undefined || Buffer.isBuffer(response)) return response;
    return encode({ type: 'response', id: query.id, flags: 0x180, questions: query.questions, ...response });
  };
  const tcp = createServer({ allowHalfOpen: true }, (socket) =>
    serveConnection(
      socket,
      (message) => answer(message, 'tcp'),
      () => undefined,
    ),
  );
  tcp.listen(port, address);
  await once(tcp, 'listening');
  const udp = createSocket('udp4');
  const bound = (tcp.address() as { port: number }).port;
  udp.bind(bound, address);
  await once(udp, 'listening');
  udp.on('message', (message, peer) => {
    const response = answer(message, 'udp');
    if (response !== undefined) udp.send(response, peer.port, peer.address);
  });
  return {
    port: bound,
    asked,
    close() {
      tcp.close();
      udp.close();
    },
  };
}
