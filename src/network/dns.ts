/**
 * The cluster's DNS server, over UDP and TCP.
 * Boundary: zone.ts answers queries for cluster names, dns-forward.ts forwards other queries, and the engine's informer provides the Services.
 * Invariants: a Service resolves as soon as its watch event has arrived; a malformed message never stops the server; no query is
 * forwarded to the server itself.
 */

import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { type Answer, decode, encode, type Packet, type Question, RECURSION_DESIRED } from 'dns-packet';
import type { Service } from '../api/generated/types.ts';
import { SERVICES } from '../api/resources.ts';
import type { SharedInformers } from '../client/shared-informers.ts';
import { UserError } from '../platform/files.ts';
import { onAbort } from '../platform/on-abort.ts';
import type { Log } from '../platform/platform.ts';
import { createForwarder, type Forwarder } from './dns-forward.ts';
import { type Answers, errorResponse, respond } from './dns-response.ts';
import { serveConnection } from './dns-tcp.ts';
import { answerQuestion, type ZoneServices } from './zone.ts';
import { zoneServices } from './zone-services.ts';

export interface DnsOptions {
  informers: SharedInformers;
  ip: string;
  /** 0: startDns() chooses a free port. */
  port: number;
  /** The domain of cluster names, such as cluster.local. */
  clusterDomain: string;
  /** The path of a resolv.conf file with the name servers for names outside the cluster. */
  upstreamFrom: string;
  log: Log;
  signal: AbortSignal;
}

const NO_ERROR = 0;
const FORMAT_ERROR = 1;
const SERVER_FAILURE = 2;
const NAME_ERROR = 3;
const NOT_IMPLEMENTED = 4;
const HEADER_BYTES = 12;
const MAX_ALIASES = 8;
const MAX_CONNECTIONS = 256;

/**
 * Starts the server, which runs until `signal` aborts. Resolves when the server listens and knows all Services. Rejects with a UserError
 * if the address is in use, and with another Error if the server cannot listen for another reason.
 */
export async function startDns(options: DnsOptions): Promise<{ port: number }> {
  const { informers, ip, log, signal } = options;
  const services = informers.follow<Service>(SERVICES, { signal });
  await services.synced;
  const forwarder = createForwarder(options.upstreamFrom, ip);
  const answer = createResponder(zoneServices(services), forwarder, options.clusterDomain.toLowerCase(), signal);
  return listen(ip, options.port, answer, log, signal);
}

type Responder = (message: Buffer, transport: 'udp' | 'tcp') => Promise<Buffer | undefined>;

/** Returns a function that answers one DNS message. The function resolves with undefined if the message must not be answered. */
export function createResponder(
  services: ZoneServices,
  forwarder: Forwarder,
  zone: string,
  signal: AbortSignal,
): Responder {
  async function resolve(question: Question, depth: number): Promise<Resolution> {
    const found = answerQuestion(question.name, question.type, zone, services);
    switch (found.kind) {
      case 'foreign':
        return 'foreign';
      case 'records':
        return { rcode: NO_ERROR, answers: found.answers, additionals: found.additionals };
      case 'noData':
        return { rcode: NO_ERROR, answers: [], additionals: [] };
      case 'nxDomain':
        return { rcode: NAME_ERROR, answers: [], additionals: [] };
      case 'alias': {
        const target = await follow({ ...question, name: found.target }, depth + 1);
        return { rcode: NO_ERROR, answers: [...found.answers, ...target], additionals: [] };
      }
    }
  }

  /**
   * Returns the records of an alias's target. If the target cannot be resolved, if there are more than MAX_ALIASES aliases in a
   * row, or if the question is not for addresses, returns none: the client then gets only the aliases found so far.
   */
  async function follow(question: Question, depth: number): Promise<Answer[]> {
    if (depth > MAX_ALIASES || (question.type !== 'A' && question.type !== 'AAAA')) return [];
    const local = await resolve(question, depth);
    if (local !== 'foreign') return local.answers;
    const query = encode({ type: 'query', id: 0, flags: RECURSION_DESIRED, questions: [question] });
    try {
      return decode(await forwarder.ask(query, 'udp', signal)).answers ?? [];
    } catch {
      return [];
    }
  }

  return async (message, transport) => {
    // Ignore responses and messages shorter than a header.
    if (message.length < HEADER_BYTES || message.readUInt8(2) >= 0x80) return undefined;
    if ((message.readUInt8(2) & 0x78) !== 0) return errorResponse(message, NOT_IMPLEMENTED);
    if (!isShort(message)) return errorResponse(message, FORMAT_ERROR);
    let query: Packet;
    try {
      query = decode(message);
    } catch {
      return errorResponse(message, FORMAT_ERROR);
    }
    const question = query.questions?.[0];
    if (question === undefined) return errorResponse(message, FORMAT_ERROR);
    const resolution = await resolve(question, 0);
    if (resolution !== 'foreign') return respond(query, question, resolution, transport, zone);
    try {
      return await forwarder.ask(message, transport, signal);
    } catch {
      return errorResponse(message, SERVER_FAILURE);
    }
  };
}

/**
 * Returns whether the message has exactly one question, and at most one answer, one authority and two additional records, according to
 * the counts in its header. Decoding thousands of compressed names would take too long.
 */
const isShort = (message: Buffer): boolean =>
  message.readUInt16BE(4) === 1 &&
  message.readUInt16BE(6) <= 1 &&
  message.readUInt16BE(8) <= 1 &&
  message.readUInt16BE(10) <= 2;

type Resolution = 'foreign' | Answers;

async function listen(
  ip: string,
  port: number,
  answer: Responder,
  log: Log,
  signal: AbortSignal,
): Promise<{ port: number }> {
  const tcp = createServer({ allowHalfOpen: true }, (socket) => serveConnection(socket, answer, log));
  tcp.maxConnections = MAX_CONNECTIONS;
  const udp = createSocket(ip.includes(':') ? 'udp6' : 'udp4');
  try {
    const bound = await bind(tcp, udp, ip, port);
    udp.on('error', (error) => log.warn('the DNS socket failed', { error: error.message }));
    udp.on('message', (message, peer) => {
      answer(message, 'udp').then(
        (response) => response !== undefined && !signal.aborted && udp.send(response, peer.port, peer.address),
        (error: Error) => log.warn('cannot answer a DNS query', { error: error.message }),
      );
    });
    const connections = new Set<Socket>();
    tcp.on('connection', (socket) => {
      connections.add(socket);
      socket.once('close', () => connections.delete(socket));
    });
    onAbort(signal, () => {
      udp.close();
      tcp.close();
      for (const socket of connections) socket.destroy();
    });
    return { port: bound };
  } catch (error) {
    tcp.close();
    udp.close();
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE') {
      throw new UserError(
        `the DNS address ${ip}:${port} is in use by another program: stop it or choose another --service-cidr`,
      );
    }
    throw new Error(`the DNS server cannot listen on ${ip}:${port}: ${message}`, { cause: error });
  }
}

/** Binds the TCP server to the port (0: a free port), then the UDP socket to the same port. Returns the port. */
async function bind(tcp: Server, udp: UdpSocket, ip: string, port: number): Promise<number> {
  tcp.listen(port, ip);
  await once(tcp, 'listening');
  const bound = (tcp.address() as { port: number }).port;
  udp.bind(bound, ip);
  await once(udp, 'listening');
  return bound;
}
