/**
 * Asks the machine's own name servers what the cluster does not know.
 * The servers are those of a resolv.conf file, read again when it changed. Rejects where none answers in time.
 */
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { readFileSync, statSync } from 'node:fs';
import { connect, isIPv6 } from 'node:net';

/** How long one server may take. */
const TIMEOUT_MILLIS = 2000;
/** Questions under way at once; further ones are refused. */
const MAX_IN_FLIGHT = 1000;

export interface Forwarder {
  /** The answer to a whole DNS message, with the message's own ID. */
  ask(query: Buffer, transport: 'udp' | 'tcp', signal: AbortSignal): Promise<Buffer>;
}

/** `exclude`: the cluster's own server, so that no question comes back to it. */
export function createForwarder(resolvConf: string, exclude: string, port = 53): Forwarder {
  let changed = Number.NaN;
  let servers: string[] = [];
  let inFlight = 0;

  function currentServers(): string[] {
    try {
      const { mtimeMs } = statSync(resolvConf);
      if (mtimeMs !== changed) {
        changed = mtimeMs;
        servers = readFileSync(resolvConf, 'utf8')
          .split('\n')
          .map((line) => /^\s*nameserver\s+(\S+)/.exec(line)?.[1])
          .filter((server) => server !== undefined && server !== exclude) as string[];
      }
    } catch {
      servers = [];
    }
    return servers;
  }

  return {
    async ask(query, transport, signal) {
      if (inFlight >= MAX_IN_FLIGHT) throw new Error('too many questions at once');
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

/** Instead of AbortSignal.any(), which leaves something behind on a signal that lives as long as the server. */
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

/** Each question has a port and an ID of its own, so that answers are hard to forge. */
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
      // Not end(): nothing would close it where the server does not.
      socket.destroy();
    });
  });
}

/** A DNS message as TCP carries it. */
export function withLength(message: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}
