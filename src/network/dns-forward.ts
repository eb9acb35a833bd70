/**
 * Forwards DNS queries for names outside the cluster to the machine's name servers. The servers are listed in a resolv.conf file, which
 * is read again after each change.
 */
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { readFileSync, statSync } from 'node:fs';
import { connect, isIPv6 } from 'node:net';

/** Time limit for the response of one name server. */
const TIMEOUT_MILLIS = 2000;
/** Maximum number of concurrent calls of ask(); further calls reject. */
const MAX_IN_FLIGHT = 1000;

export interface Forwarder {
  /**
   * Asks the name servers one after another. Resolves with the first response, whose ID is that of the query. Rejects if there
   * is no server, if every server fails or does not respond in time, if MAX_IN_FLIGHT calls are in progress, or when `signal`
   * aborts.
   */
  ask(query: Buffer, transport: 'udp' | 'tcp', signal: AbortSignal): Promise<Buffer>;
}

/** `exclude`: the address of the cluster DNS itself. It is ignored among the name servers, because it would cause a forwarding loop. */
export function createForwarder(resolvConf: string, exclude: string, port = 53): Forwarder {
  let changed = Number.NaN;
  let servers: string[] = [];
  let inFlight = 0;

  function currentServers(): string[] {
    try {
      const { mtimeMs } = statSync(resolvConf);
      if (mtimeMs !== changed) {
        servers = readFileSync(resolvConf, 'utf8')
          .split('\n')
          .map((line) => /^\s*nameserver\s+(\S+)/.exec(line)?.[1])
          .filter((server) => server !== undefined && server !== exclude) as string[];
        changed = mtimeMs;
      }
    } catch {
      servers = [];
      changed = Number.NaN;
    }
    return servers;
  }

  return {
    async ask(query, transport, signal) {
      if (inFlight >= MAX_IN_FLIGHT) throw new Error('too many concurrent queries');
      inFlight += 1;
      try {
        let failure = new Error('there is no name server to ask');
        for (const server of currentServers()) {
          try {
            const askOne = transport === 'udp' ? askUdp : askTcp;
            return await inTime(signal, (limit) => askOne(query, server, port, limit));
          } catch (error) {
            failure = error as Error;
          }
        }
        throw failure;
      } finally {
        inFlight -= 1;
      }
    },
  };
}

/**
 * Calls `work` with a signal that aborts after TIMEOUT_MILLIS or when `signal` aborts. AbortSignal.any() would leak memory, because
 * `signal` exists as long as the server.
 */
async function inTime<T>(signal: AbortSignal, work: (limit: AbortSignal) => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const limit = new AbortController();
  const abort = (): void => limit.abort();
  const timer = setTimeout(abort, TIMEOUT_MILLIS);
  signal.addEventListener('abort', abort);
  try {
    return await work(limit.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}

/** Sends each query from a port of its own and with a random ID, so that responses are hard to forge. */
function askUdp(query: Buffer, server: string, port: number, signal: AbortSignal): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = createSocket(isIPv6(server) ? 'udp6' : 'udp4');
    const id = randomInt(0x10000);
    const own = Buffer.from(query);
    own.writeUInt16BE(id, 0);
    const end = (settle: () => void): void => {
      signal.removeEventListener('abort', aborted);
      socket.close();
      settle();
    };
    const aborted = (): void => end(() => reject(new Error(`${server} did not answer`)));
    signal.addEventListener('abort', aborted, { once: true });
    socket.on('error', (error) => end(() => reject(error)));
    socket.on('message', (answer) => {
      if (answer.length < 12 || answer.readUInt16BE(0) !== id) return;
      answer.writeUInt16BE(query.readUInt16BE(0), 0);
      end(() => resolve(answer));
    });
    socket.connect(port, server, () => socket.send(own));
  });
}

function askTcp(query: Buffer, server: string, port: number, signal: AbortSignal): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: server, port });
    const chunks: Buffer[] = [];
    const aborted = (): void => void socket.destroy(new Error(`${server} did not answer`));
    signal.addEventListener('abort', aborted, { once: true });
    socket.on('connect', () => socket.write(withLength(query)));
    socket.on('error', reject);
    socket.on('close', () => {
      signal.removeEventListener('abort', aborted);
      reject(new Error(`${server} closed the connection`));
    });
    socket.on('data', (chunk) => {
      chunks.push(chunk);
      const all = Buffer.concat(chunks);
      if (all.length < 2 || all.length < 2 + all.readUInt16BE(0)) return;
      resolve(all.subarray(2, 2 + all.readUInt16BE(0)));
      // Do not use end(): the connection would stay open if the server does not close its half.
      socket.destroy();
    });
  });
}

/** Prefixes a DNS message with its length, as TCP requires. */
export function withLength(message: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}
