import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { jsonLines } from '../../client/json-lines.ts';
import { UserError } from '../../platform/files.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import { haveEnded, listProcesses, sendSignal } from '../../platform/processes.ts';
import { mayBeOwn } from '../../platform/programs/pid-namespace.ts';
import type { EngineMessage, Hello, ProcessMessage } from '../dns-server/protocol.ts';
import { type ChildMessage, type DnsSettings, dnsArguments, isDnsProcess } from '../dns-server/settings.ts';

export interface DnsProcessOptions {
  /** The path of the socket between the engine and the process, which also identifies the process. */
  socket: string;
  /** The file to which a process that fails writes its error. */
  logFile: string;
  settings: Omit<DnsSettings, 'identity'>;
  log: Log;
  timers: Timers;
}

export interface DnsConnection {
  hello: Hello;
  socket: Socket;
  send(message: EngineMessage): void;
  /** Resolves when the process has confirmed the message. Rejects if the connection ends earlier. */
  confirmed(op: 'end' | 'flush'): Promise<void>;
  /** Resolves when the connection has ended. Never rejects. */
  closed: Promise<void>;
}

const MAIN = fileURLToPath(new URL(`../dns-server/main${extname(import.meta.url)}`, import.meta.url));
/** The process allocates little, so that the smallest young generation is enough. See bin/lifepod for the other option. */
const NODE_OPTIONS = ['--max-semi-space-size=1', ...(MAIN.endsWith('.ts') ? ['--no-wasm-tier-up'] : [])];
/** A process that does not greet within this time is ended. */
const GREETING_MILLIS = 5_000;

/**
 * Resolves with a connection to a process with these settings. A running process with other code or settings is replaced by a new one,
 * which takes over its sockets. Rejects with a UserError if the address is in use, and with another Error if no process starts.
 */
export async function openDnsProcess(options: DnsProcessOptions): Promise<DnsConnection> {
  const settings: DnsSettings = { ...options.settings, identity: identityOf(options.settings) };
  const running = await connectTo(options);
  if (running === undefined) {
    await endDnsProcesses(options.socket, options.timers);
    await start(options, settings);
    return (await connectTo(options)) ?? Promise.reject(new Error('the DNS process ended after its start'));
  }
  if (running.hello.identity === settings.identity) return running;
  return replace(running, options, settings);
}

function identityOf(settings: Omit<DnsSettings, 'identity'>): string {
  const hash = createHash('sha256').update(JSON.stringify(settings)).update(process.version);
  const folder = join(MAIN, '..');
  for (const name of readdirSync(folder).sort())
    if (/^[a-z-]+\.[jt]s$/.test(name)) hash.update(readFileSync(join(folder, name)));
  return hash.digest('hex').slice(0, 16);
}

const END_MILLIS = 5_000;

/** Kills all DNS processes of the socket; they have nothing to save. Rejects if one does not end. */
export async function endDnsProcesses(socket: string, timers: Timers): Promise<void> {
  const pids = findDnsProcesses(socket);
  for (const pid of pids) sendSignal(pid, 'SIGKILL');
  if (!(await haveEnded(pids, END_MILLIS, timers))) throw new Error(`the DNS processes ${pids.join(', ')} do not end`);
}

export const findDnsProcesses = (socket: string): number[] =>
  listProcesses()
    .filter(({ args }) => isDnsProcess(args, socket))
    .map(({ pid }) => pid)
    .filter(mayBeOwn);

async function start({ logFile, socket }: DnsProcessOptions, settings: DnsSettings): Promise<void> {
  const file = openSync(logFile, 'w', 0o600);
  const child = spawn(process.execPath, [...NODE_OPTIONS, MAIN, ...dnsArguments(socket, settings)], {
    // The process must survive the engine, and must not get the signals of the engine's terminal.
    detached: true,
    stdio: ['ignore', 'ignore', file, 'ipc'],
  });
  closeSync(file);
  child.unref();
  const report = await new Promise<ChildMessage | undefined>((resolve, reject) => {
    child.once('message', resolve);
    child.once('exit', () => resolve(undefined));
    child.once('error', reject);
  });
  if (report !== undefined && 'listening' in report) return;
  const failed = report !== undefined && 'failed' in report ? report.failed : undefined;
  const address = settings.addresses.map((each) => `${each}:${settings.port}`).join(', ');
  if (failed?.code === 'EADDRINUSE')
    throw new UserError(
      `the DNS address ${address} is in use by another program: stop it or choose another --service-cidr`,
    );
  throw new Error(`the DNS server cannot listen on ${address}: ${failed?.message ?? `see ${logFile}`}`);
}

/** Resolves with a connection to the new process, or to the old one if the replacement fails. */
async function replace(
  running: DnsConnection,
  options: DnsProcessOptions,
  settings: DnsSettings,
): Promise<DnsConnection> {
  options.log.info('replacing a DNS process of another version', { pid: running.hello.pid });
  const replaced = new Promise<boolean>((resolve) => {
    running.socket.on('replaced', resolve);
    void running.closed.then(() => resolve(true));
  });
  const args = [...NODE_OPTIONS, MAIN, ...dnsArguments(options.socket, settings)];
  running.send({ op: 'replace', command: process.execPath, args });
  const isReplaced = await replaced;
  if (!isReplaced) {
    options.log.error('the DNS process could not be replaced; it continues with its former version');
    return running;
  }
  running.socket.destroy();
  return (await connectTo(options)) ?? openDnsProcess(options);
}

/** Connects to the process that listens on the socket. Resolves with undefined if no process listens, or if it does not greet in time. */
async function connectTo(options: DnsProcessOptions): Promise<DnsConnection | undefined> {
  const { log, timers } = options;
  const socket = connect(options.socket);
  try {
    await once(socket, 'connect');
  } catch {
    return undefined;
  }
  const greeted = Promise.withResolvers<Hello | undefined>();
  const confirmations = new Map<number, PromiseWithResolvers<void>>();
  // events.once() would reject on an error of the socket, such as EPIPE, which precedes the event `close` if the process has ended.
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => {
      greeted.resolve(undefined);
      for (const each of confirmations.values()) each.reject(new Error('the connection to the DNS process ended'));
      resolve();
    });
  });
  socket.on('error', () => socket.destroy());
  const receive = jsonLines((value) => {
    const message = value as ProcessMessage;
    if ('hello' in message) greeted.resolve(message.hello);
    else if ('done' in message) confirmations.get(message.done)?.resolve();
    else if ('replaced' in message) socket.emit('replaced', message.replaced);
    else log[message.log.level](message.log.message, message.log.fields);
  });
  socket.on('data', (chunk) => {
    try {
      receive(chunk);
    } catch (error) {
      socket.destroy(error as Error);
    }
  });
  const timer = timers.at(timers.now() + GREETING_MILLIS, () => greeted.resolve(undefined));
  const hello = await greeted.promise;
  timer.cancel();
  if (hello === undefined) {
    socket.destroy();
    return undefined;
  }
  let last = 0;
  const send = (message: EngineMessage): void => void socket.write(`${JSON.stringify(message)}\n`);
  return {
    hello,
    socket,
    send,
    closed,
    async confirmed(op) {
      const id = ++last;
      const confirmation = Promise.withResolvers<void>();
      confirmations.set(id, confirmation);
      if (socket.destroyed) confirmation.reject(new Error('the connection to the DNS process has ended'));
      send({ op, id });
      await confirmation.promise.finally(() => confirmations.delete(id));
    },
  };
}
