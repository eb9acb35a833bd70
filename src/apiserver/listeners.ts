/** Listens on further addresses. The server treats connections to them like connections that it has accepted itself. */
import { once } from 'node:events';
import type { Server } from 'node:https';
import { createServer, type Server as NetServer, type Socket } from 'node:net';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import { UserError } from '../platform/files.ts';
import { asRoot } from '../platform/programs/typed-program.ts';

export interface Listeners {
  /** Rejects like listen(). */
  open(host: string, port: number): Promise<void>;
  /** Accepts no more connections. Resolves when all accepted connections have ended. */
  close(): Promise<void>;
}

/** `admit`: returns whether the server has room for one more connection; if not, the connection is closed. */
export function createListeners(server: Server, admit: (socket: Socket) => boolean): Listeners {
  const listeners: NetServer[] = [];
  return {
    async open(host, port) {
      // The server has the same option, for the connections that it accepts itself.
      const listener = createServer({ noDelay: true }, (socket) => {
        if (admit(socket)) server.emit('connection', socket);
        else socket.destroy();
      });
      await listen(listener, host, port);
      listeners.push(listener);
    },
    async close() {
      const ended = listeners.map((listener) => once(listener, 'close'));
      for (const listener of listeners) listener.close();
      await Promise.all(ended);
    },
  };
}

/**
 * Returns the message that the loopback interface is down; undefined if `host` is not a loopback address, or if the interface is up.
 * `interfaces`: the interfaces that are up.
 */
export function loopbackDown(
  host: string,
  interfaces: NodeJS.Dict<NetworkInterfaceInfo[]> = networkInterfaces(),
): string | undefined {
  const isUp = Object.values(interfaces).some((addresses) => addresses?.some(({ internal }) => internal));
  return isUp || !/^(127\.|::1$|localhost$)/.test(host)
    ? undefined
    : `the interface lo is down: type '${asRoot('ip link set lo up', process.env)}'`;
}

/** Rejects with a UserError if the port is in use, the host is not an address of this machine, or listening on the port requires root. */
export async function listen(server: NetServer, host: string, port: number): Promise<void> {
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE')
      throw new UserError(`port ${port} on ${host} is already in use: choose another with --port`);
    if (code === 'EADDRNOTAVAIL')
      throw new UserError(
        `cannot listen on ${host}: ${loopbackDown(host) ?? 'this machine does not have that address'}`,
      );
    if (code === 'EACCES')
      throw new UserError(`permission denied to listen on port ${port}: run as root, or choose another with --port`);
    throw error;
  }
}
