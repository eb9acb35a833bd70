/**
 * A program that runs in a network namespace (see network-peer.ts). It reads commands from standard input and writes answers to standard
 * output, one JSON document per line. Its servers answer each message with their name and the sender's address.
 */
import { createSocket } from 'node:dgram';
import { connect, createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';

export interface Command {
  id: number;
  /** `open`: opens a connection that stays open. `say`: sends a message on such a connection. `measure`: answers with a number. */
  op: 'listen' | 'open' | 'say' | 'close' | 'measure';
  /**
   * `roundTrip`: the microseconds for a message and its answer on an open connection. `connection`: the same, with the time to open the
   * connection. `throughput`: the mebibytes per second in one direction on one connection.
   */
  what?: 'roundTrip' | 'connection' | 'throughput';
  protocol?: 'tcp' | 'udp';
  address?: string;
  port?: number;
  name?: string;
  localPort?: number;
  /** The ID of the command that opened the server or connection. */
  handle?: number;
}

const PATIENCE_MILLIS = Number(process.argv[2] ?? 2000);

interface Opened {
  say(): Promise<string>;
  close(): void;
}
const opened = new Map<number, Opened>();

const plain = (address = ''): string => address.replace(/^::ffff:/, '');

async function listen(name: string, port: number): Promise<Opened> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('data', () => socket.write(`${name} ${plain(socket.remoteAddress)}`));
    socket.on('close', () => sockets.delete(socket));
  });
  const udp = createSocket({ type: 'udp6' }, (_, from) =>
    udp.send(`${name} ${plain(from.address)}`, from.port, from.address),
  );
  await Promise.all([
    new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, '::', resolve)),
    new Promise<void>((resolve) => udp.bind(port, '::', resolve)),
  ]);
  return {
    say: () => Promise.reject(new Error('a server does not speak first')),
    close() {
      server.close();
      udp.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

const patience = (answer: Promise<string>): Promise<string> =>
  Promise.race([answer, new Promise<string>((resolve) => setTimeout(resolve, PATIENCE_MILLIS, 'timeout'))]);

function openTcp({ address, port, localPort }: Command): Opened {
  const socket = connect({
    host: address as string,
    port: port as number,
    ...(localPort === undefined ? {} : { localPort }),
  });
  let answered: (answer: string) => void = () => undefined;
  let failure: string | undefined;
  const end = (reason: string): void => {
    failure ??= reason;
    answered(failure);
  };
  socket.on('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
  socket.on('close', () => end('closed'));
  socket.on('data', (data) => answered(data.toString()));
  return {
    say: () =>
      patience(
        new Promise((resolve) => {
          answered = resolve;
          if (failure !== undefined) resolve(failure);
          else socket.write('x');
        }),
      ),
    close: () => socket.destroy(),
  };
}

async function openUdp({ address, port, localPort }: Command): Promise<Opened> {
  const socket = createSocket(address?.includes(':') === true ? 'udp6' : 'udp4');
  let answered: (answer: string) => void = () => undefined;
  socket.on('error', (error: NodeJS.ErrnoException) => answered(error.code ?? error.message));
  socket.on('message', (data) => answered(data.toString()));
  if (localPort !== undefined) await new Promise<void>((resolve) => socket.bind(localPort, resolve));
  // Only a connected socket reports ICMP errors.
  await new Promise<void>((resolve) => socket.connect(port as number, address as string, resolve));
  return {
    say: () =>
      patience(
        new Promise((resolve) => {
          answered = resolve;
          socket.send('x');
        }),
      ),
    close: () => socket.close(),
  };
}

const ROUND_TRIPS = 3000;
const CONNECTIONS = 500;
const MEBIBYTES = 256;

async function measure(command: Command): Promise<number> {
  const { what, address, port } = command;
  const began = performance.now();
  if (what === 'throughput') {
    const socket = connect({ host: address as string, port: port as number }).resume();
    const block = Buffer.alloc(2 ** 20);
    for (let sent = 0; sent < MEBIBYTES; sent++) {
      if (!socket.write(block)) await new Promise((resolve) => socket.once('drain', resolve));
    }
    await new Promise((resolve) => socket.once('close', resolve).end());
    return (MEBIBYTES * 1000) / (performance.now() - began);
  }
  if (what === 'roundTrip') {
    const connection = openTcp(command);
    for (let count = 0; count < ROUND_TRIPS; count++) await connection.say();
    connection.close();
    return ((performance.now() - began) * 1000) / ROUND_TRIPS;
  }
  for (let count = 0; count < CONNECTIONS; count++) {
    const connection = openTcp(command);
    await connection.say();
    connection.close();
  }
  return ((performance.now() - began) * 1000) / CONNECTIONS;
}

async function execute(command: Command): Promise<string> {
  const { op, id, handle = 0, protocol } = command;
  if (op === 'measure') return String(await measure(command));
  if (op === 'listen') opened.set(id, await listen(command.name ?? '', command.port as number));
  else if (op === 'open') opened.set(id, protocol === 'udp' ? await openUdp(command) : openTcp(command));
  else if (op === 'say') return (await opened.get(handle)?.say()) ?? 'not open';
  else {
    opened.get(handle)?.close();
    opened.delete(handle);
  }
  return 'done';
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const command = JSON.parse(line) as Command;
  execute(command)
    .catch((error: Error) => `failed: ${error.message}`)
    .then((answer) => process.stdout.write(`${JSON.stringify({ id: command.id, answer })}\n`));
});
