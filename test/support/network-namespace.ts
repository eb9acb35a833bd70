/** Network namespaces of ip-netns(8) for tests that need packets, with clients and servers that run in them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type CommandResult, runCommand, runCommandOk } from '../../src/platform/processes.ts';

export interface NetworkNamespace extends AsyncDisposable {
  /** Begins with `lifepod-test-`. */
  name: string;
  run(command: string, ...args: string[]): Promise<CommandResult>;
  /** Like run(), but rejects if the exit code is not 0, and resolves with the standard output. `input` is the standard input. */
  runOk(command: string, args: string[], input?: string): Promise<string>;
}

export async function createNetworkNamespace(): Promise<NetworkNamespace> {
  const name = `lifepod-test-${randomBytes(4).toString('hex')}`;
  await runCommandOk('ip', ['netns', 'add', name]);
  const inside = ['netns', 'exec', name];
  await runCommandOk('ip', [...inside, 'ip', 'link', 'set', 'lo', 'up']);
  return {
    name,
    run: (command, ...args) => runCommand('ip', [...inside, command, ...args]),
    runOk: (command, args, input) =>
      runCommandOk('ip', [...inside, command, ...args], input === undefined ? {} : { input }),
    async [Symbol.asyncDispose]() {
      await runCommandOk('ip', ['netns', 'delete', name]);
    },
  };
}

export const inside = (namespace: string, ...command: string[]): Promise<CommandResult> =>
  runCommand('ip', ['netns', 'exec', namespace, ...command]);

export const reaches = async (namespace: string, address: string): Promise<boolean> =>
  (await inside(namespace, 'busybox', 'ping', '-c', '1', '-W', '5', address)).code === 0;

/**
 * Asks a server of serve() from a namespace, by default that of this process. Resolves with the answer; with the empty text if the server
 * cannot be reached.
 */
export async function ask(
  namespace: string | undefined,
  address: string,
  port: number,
  protocol: 'tcp' | 'udp' = 'tcp',
): Promise<string> {
  const command = [process.execPath, '-e', ASK, protocol, address, String(port)];
  const [program = '', ...args] = namespace === undefined ? command : ['ip', 'netns', 'exec', namespace, ...command];
  return (await runCommand(program, args)).stdout;
}

/**
 * Opens a TCP connection, and resolves with the code of the error, such as ECONNREFUSED. Resolves with the empty text if the connection
 * succeeds or has no result after 20 s.
 */
export async function whyRefused(namespace: string, address: string, port: number): Promise<string> {
  const program = `require('node:net').connect(${port}, '${address}').setTimeout(20000, () => process.exit())
    .on('error', ({ code }) => process.stdout.write(code)).on('connect', () => process.exit());`;
  return (await inside(namespace, process.execPath, '-e', program)).stdout;
}

function ending(child: ChildProcess): AsyncDisposable {
  const ended = new Promise((resolve) => child.once('exit', resolve));
  return {
    async [Symbol.asyncDispose]() {
      child.kill();
      await ended;
    },
  };
}

/** The server answers `NAME to PEER` over TCP and UDP. Resolves when the server listens. */
export async function serve(namespace: string, port: number, name: string): Promise<AsyncDisposable> {
  const args = ['netns', 'exec', namespace, process.execPath, '-e', SERVE, String(port), name];
  const server = spawn('ip', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(server.stdout, 'data');
  return ending(server);
}

const SERVE = `
const [port, name] = process.argv.slice(1);
const text = (peer) => name + ' to ' + peer.replace('::ffff:', '');
const udp = require('node:dgram').createSocket('udp6');
udp.on('message', (_, { port, address }) => udp.send(text(address), port, address));
udp.bind(Number(port), '::', () =>
  require('node:net').createServer((socket) => socket.end(text(socket.remoteAddress)))
    .listen(Number(port), '::', () => console.log('listening')));`;

const ASK = `
const [protocol, address, port] = process.argv.slice(1);
setTimeout(() => process.exit(1), 3000);
if (protocol === 'tcp') {
  let answer = '';
  require('node:net').connect(Number(port), address).on('error', () => process.exit(1))
    .on('data', (text) => (answer += text)).on('end', () => process.stdout.write(answer, () => process.exit()));
} else {
  const udp = require('node:dgram').createSocket(address.includes(':') ? 'udp6' : 'udp4');
  udp.on('error', () => process.exit(1));
  udp.on('message', (text) => process.stdout.write(text, () => process.exit()));
  udp.connect(Number(port), address, () => udp.send('?'));
}`;

export interface Connection extends AsyncDisposable {
  /** Sends the text, and resolves with the next data that arrive. */
  exchange(text: string): Promise<string>;
}

export function connect(namespace: string, address: string, port: number): Connection {
  return exchanging(
    namespace,
    `const socket = require('node:net').connect(${port}, '${address}'); process.stdin.pipe(socket).pipe(process.stdout);`,
  );
}

/** The JavaScript program sends its standard input to a server, and writes the received data to its standard output. */
function exchanging(namespace: string, program: string): Connection {
  const child = spawn('ip', ['netns', 'exec', namespace, process.execPath, '-e', program], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  return {
    async exchange(text) {
      child.stdin.write(text);
      const [data] = await once(child.stdout, 'data', { signal: AbortSignal.timeout(30_000) });
      return String(data);
    },
    ...ending(child),
  };
}

/** The connection sends UDP datagrams, all from the same source port. */
export function exchangeDatagrams(namespace: string, address: string, port: number): Connection {
  const program = `
const socket = require('node:dgram').createSocket('udp4');
socket.on('message', (text) => process.stdout.write(text));
socket.connect(${port}, '${address}', () => process.stdin.on('data', (text) => socket.send(text)));`;
  return exchanging(namespace, program);
}

/** Starts a TCP server that sends back what it receives. Resolves when the server listens. */
export async function echoes(namespace: string, port: number): Promise<AsyncDisposable> {
  const program = `require('node:net').createServer((socket) => socket.pipe(socket)).listen(${port}, () => console.log('listening'))`;
  const child = spawn('ip', ['netns', 'exec', namespace, process.execPath, '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  return ending(child);
}
