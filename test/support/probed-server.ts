/**
 * A server in the test process for the requests of probes and hooks. The path selects the response: /status/N responds with status N, /late
 * responds after LATE_MILLIS, /slow never responds, /hold responds after release(), /away redirects to another host, and /switch responds
 * with the status of set().
 */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';

export const LATE_MILLIS = 300;

export interface Asked {
  at: number;
  path: string;
  headers: IncomingHttpHeaders;
}

export interface ProbedServer {
  port: number;
  asked(path: string): Asked[];
  untilAsked(path: string, count: number): Promise<Asked[]>;
  /** The status of responses to /switch is 200 at first. */
  set(status: number): void;
  /** Responds to all pending and all later requests for /hold. */
  release(): void;
  close(): Promise<void>;
}

/** The server listens on loopback, with HTTPS if `tls` is given. */
export async function startProbedServer(tls?: { certificate: string; key: string }): Promise<ProbedServer> {
  const requests: Asked[] = [];
  const waiting = new Set<() => void>();
  let switched = 200;
  const released = Promise.withResolvers<void>();
  const answer = ({ url: path = '', headers }: IncomingMessage, response: ServerResponse): void => {
    requests.push({ at: Date.now(), path, headers });
    for (const check of [...waiting]) check();
    if (path === '/slow') return;
    if (path === '/late') {
      setTimeout(() => response.end(), LATE_MILLIS);
      return;
    }
    if (path === '/hold') {
      void released.promise.then(() => response.end());
      return;
    }
    const status = path === '/switch' ? switched : Number(/^\/status\/(\d+)/.exec(path)?.[1] ?? 200);
    if (path === '/away') response.writeHead(302, { location: 'http://elsewhere.invalid/' }).end('gone away');
    else response.writeHead(status).end();
  };
  const server =
    tls === undefined ? createServer(answer) : createHttpsServer({ cert: tls.certificate, key: tls.key }, answer);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const asked = (path: string): Asked[] => requests.filter((each) => each.path === path);
  return {
    port: (server.address() as AddressInfo).port,
    asked,
    untilAsked: (path, count) =>
      new Promise((resolve, reject) => {
        const check = (): void => {
          const found = asked(path);
          if (found.length < count) return;
          clearTimeout(deadline);
          waiting.delete(check);
          resolve(found);
        };
        const deadline = setTimeout(() => {
          waiting.delete(check);
          reject(new Error(`${path} was requested ${asked(path).length} times, not ${count}`));
        }, 60_000);
        waiting.add(check);
        check();
      }),
    set(status) {
      switched = status;
    },
    release: released.resolve,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
