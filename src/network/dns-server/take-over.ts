/**
 * How a DNS process takes the place of another without losing a query. The older process serves until the newer one has all records. Then
 * the older process passes its sockets, with the queries that wait in them.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket as UdpSocket } from 'node:dgram';
import type { EventEmitter } from 'node:events';
import type { Server } from 'node:net';
import { type Listener, portOf } from './listeners.ts';
import { type ChildMessage, type SocketMessage, TAKE_OVER } from './settings.ts';

export interface Successor {
  listening(): void;
  serving(): void;
  /** The newer process has ended before it answered queries. */
  failed(): void;
}

/** Starts the newer process, and passes the sockets of `listeners` to it on request. */
export function startSuccessor(command: string, args: string[], listeners: readonly Listener[], on: Successor): void {
  const child = spawn(command, [...args, TAKE_OVER], { detached: true, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  let isServing = false;
  const fail = (): void => {
    if (!isServing) on.failed();
    isServing = true;
  };
  child.once('error', fail);
  child.once('exit', fail);
  child.on('message', (message: ChildMessage) => {
    if ('listening' in message) on.listening();
    if ('wantsSockets' in message) passSockets(child, listeners);
    if (!('serving' in message)) return;
    isServing = true;
    child.disconnect();
    child.unref();
    on.serving();
  });
}

function passSockets(child: ChildProcess, listeners: readonly Listener[]): void {
  const pass = (message: SocketMessage, socket?: UdpSocket | Server): void =>
    void child.send(message, socket, {}, () => undefined);
  for (const { address, udp, tcp } of listeners) {
    const port = portOf(tcp);
    pass({ address, port, kind: 'udp' }, udp);
    pass({ address, port, kind: 'tcp' }, tcp);
  }
  pass({ isLast: true });
}

export interface PassedSocket {
  address: string;
  port: number;
  udp?: UdpSocket;
  tcp?: Server;
  /** Each function delivers the queries or connections that one socket has received since it was passed. */
  releases: (() => void)[];
}

/** Asks the older process for its sockets. If the older process disconnects early, resolves with the sockets that have arrived. */
export function requestSockets(): Promise<PassedSocket[]> {
  const passed = new Map<string, PassedSocket>();
  return new Promise((resolve) => {
    const end = (): void => resolve([...passed.values()]);
    if (!process.connected) return end();
    process.once('disconnect', end);
    process.on('message', (message: SocketMessage, socket: unknown) => {
      if ('isLast' in message) return end();
      const { address, port, kind } = message;
      const known = passed.get(address) ?? { address, port, releases: [] };
      known.releases.push(hold(socket as EventEmitter, kind === 'udp' ? 'message' : 'connection'));
      // serveConnection() needs this option, which a server loses when it is passed to another process.
      if (kind === 'tcp') Object.assign(socket as Server, { allowHalfOpen: true });
      passed.set(address, { ...known, [kind]: socket });
    });
    report({ wantsSockets: true });
  });
}

/**
 * Stores the events of a passed socket, which may receive messages or connections immediately. Returns a function that emits the stored
 * events and ends the storing.
 */
function hold(socket: EventEmitter, event: string): () => void {
  const held: unknown[][] = [];
  const keep = (...args: unknown[]): void => void held.push(args);
  socket.on(event, keep);
  return () => {
    socket.off(event, keep);
    for (const args of held) socket.emit(event, ...args);
  };
}

/** Sends the message to the process that started this one. Does nothing if that process has ended. */
export function report(message: ChildMessage): void {
  if (process.connected) process.send?.(message, undefined, {}, () => undefined);
}
