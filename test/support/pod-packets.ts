/**
 * Sends datagrams from a network namespace to loopback addresses of the machine. A container could send them with raw sockets. Routes
 * result in the same packets.
 */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { runCommandOk } from '../../src/platform/processes.ts';

/** Packets to 127.0.0.0/8 then leave the namespace through eth0. */
export async function routeLoopbackOutside(namespace: string, gateway: string): Promise<void> {
  const commands = [
    'echo 1 > /proc/sys/net/ipv4/conf/eth0/route_localnet',
    'ip link set lo up',
    'ip route delete table local local 127.0.0.0/8 dev lo',
    'ip route delete table local local 127.0.0.1 dev lo',
    `ip route add 127.0.0.0/8 via ${gateway} dev eth0`,
    'ip address add 127.0.0.9/32 dev eth0',
  ];
  await inNamespace(namespace, 'sh', '-e', '-c', commands.join('\n'));
}

/** `namespace` is the path of the namespace's file. */
const inNamespace = (namespace: string, ...command: string[]): Promise<string> =>
  runCommandOk('nsenter', [`--net=${namespace}`, ...command]);

export interface Datagram {
  to: string;
  /** By default, the routes of the namespace determine the source address. */
  from?: string;
  text: string;
}

/** `namespace` is the path of the network namespace's file. */
export async function sendDatagrams(namespace: string, port: number, datagrams: readonly Datagram[]): Promise<void> {
  await inNamespace(namespace, process.execPath, '-e', SEND, String(port), JSON.stringify(datagrams));
}

export interface Listeners extends AsyncDisposable {
  /** Sends the datagrams, then a last one to the gateway. Resolves with the texts that arrived before the last one. */
  arrived(namespace: string, datagrams: readonly Datagram[]): Promise<string[]>;
}

const LAST = 'the last one';

export async function listenOn(gateway: string, addresses: readonly string[]): Promise<Listeners> {
  const sockets: Socket[] = [await bind(gateway, 0)];
  const { port } = (sockets[0] as Socket).address();
  for (const address of addresses) sockets.push(await bind(address, port));
  return {
    async arrived(namespace, datagrams) {
      const texts: string[] = [];
      const last = Promise.withResolvers<void>();
      const receive = (text: Buffer): void => {
        if (String(text) === LAST) last.resolve();
        else texts.push(String(text));
      };
      for (const socket of sockets) socket.on('message', receive);
      try {
        const all = [...datagrams, { to: gateway, text: LAST }];
        await sendDatagrams(namespace, port, all);
        await last.promise;
        // The kernel has already delivered the other datagrams to their sockets, so one turn of the event loop reads all of them.
        await new Promise((resolve) => setImmediate(resolve));
        return texts;
      } finally {
        for (const socket of sockets) socket.off('message', receive);
      }
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(sockets.map((socket) => new Promise<void>((resolve) => socket.close(() => resolve()))));
    },
  };
}

async function bind(address: string, port: number): Promise<Socket> {
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
  socket.bind(port, address);
  await once(socket, 'listening');
  return socket;
}

const SEND = `
const { createSocket } = require('node:dgram');
const [port, datagrams] = process.argv.slice(1);
(async () => {
  for (const { to, from, text } of JSON.parse(datagrams)) {
    const socket = createSocket(to.includes(':') ? 'udp6' : 'udp4');
    await new Promise((resolve) => socket.bind(0, from, resolve));
    await new Promise((resolve, reject) =>
      socket.send(text, Number(port), to, (error) => (error ? reject(error) : resolve())));
    socket.close();
  }
})();`;
