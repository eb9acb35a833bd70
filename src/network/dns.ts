/**
 * The cluster's DNS server, over UDP and TCP.
 * Boundary: the names are zone.ts's, other names are forwarded (dns-forward.ts); Services come from an informer.
 * Invariants: a Service resolves as soon as its watch event has arrived; a bad message ends nothing; no question is
 * forwarded to the server itself.
 */
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import {
  type Answer,
  AUTHORITATIVE_ANSWER,
  decode,
  encode,
  type OptAnswer,
  type Packet,
  type Question,
  RECURSION_AVAILABLE,
  RECURSION_DESIRED,
  type SoaAnswer,
  TRUNCATED_RESPONSE,
} from 'dns-packet';
import type { Service } from '../api/generated/types.ts';
import type { Client } from '../client/client.ts';
import { createInformer } from '../client/informer.ts';
import { UserError } from '../platform/files.ts';
import type { Log, Timers } from '../platform/platform.ts';
import { createForwarder, type Forwarder, withLength } from './dns-forward.ts';
import { createServiceIndex } from './service-index.ts';
import { answerQuestion, TTL_SECONDS, type ZoneServices } from './zone.ts';

export interface DnsOptions {
  client: Client;
  ip: string;
  /** 0: any free one. */
  port: number;
  /** cluster.local */
  clusterDomain: string;
  /** A resolv.conf file that names the servers for other names. */
  upstreamFrom: string;
  timers: Timers;
  log: Log;
  signal: AbortSignal;
}

const NO_ERROR = 0;
const FORMAT_ERROR = 1;
const SERVER_FAILURE = 2;
const NAME_ERROR = 3;
const NOT_IMPLEMENTED = 4;
const HEADER_BYTES = 12;
const CLASSIC_UDP_BYTES = 512;
/** The size that passes every network unfragmented (DNS flag day 2020). */
const MAX_UDP_BYTES = 1232;
const MAX_ALIASES = 8;
const MAX_CONNECTIONS = 256;
const IDLE_MILLIS = 10_000;

/** Serves until `signal` aborts. Resolves when it listens and knows all Services. */
export async function startDns(options: DnsOptions): Promise<{ port: number }> {
  const { client, ip, log, signal, timers } = options;
  const index = createServiceIndex();
  const services = client.resource<Service>({ group: '', version: 'v1', resource: 'services' });
  const informer = createInformer(
    services,
    { log, timers, signal },
    { added: index.put, updated: index.put, deleted: index.remove },
  );
  await informer.synced;
  const forwarder = createForwarder(options.upstreamFrom, ip);
  const answer = createResponder(index, forwarder, options.clusterDomain.toLowerCase(), signal);
  return listen(ip, options.port, answer, log, signal);
}

type Responder = (message: Buffer, transport: 'udp' | 'tcp') => Promise<Buffer | undefined>;

/** Answers one message; undefined where it deserves none. */
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

  /** The records of an alias's target; none where it cannot be resolved: the client then has the alias alone. */
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
    // A response, or less than a header.
    if (message.length < HEADER_BYTES || message.readUInt8(2) >= 0x80) return undefined;
    let query: Packet;
    try {
      query = decode(message);
    } catch {
      return errorResponse(message, FORMAT_ERROR);
    }
    if ((message.readUInt8(2) & 0x78) !== 0) return errorResponse(message, NOT_IMPLEMENTED);
    const question = query.questions?.[0];
    if (question === undefined || query.questions?.length !== 1) return errorResponse(message, FORMAT_ERROR);
    const resolution = await resolve(question, 0);
    if (resolution !== 'foreign') return respond(query, question, resolution, transport, zone);
    try {
      return await forwarder.ask(message, transport, signal);
    } catch {
      return errorResponse(message, SERVER_FAILURE);
    }
  };
}

type Resolution = 'foreign' | { rcode: number; answers: Answer[]; additionals: Answer[] };

function respond(
  query: Packet,
  question: Question,
  resolution: Exclude<Resolution, 'foreign'>,
  transport: 'udp' | 'tcp',
  zone: string,
): Buffer {
  const asked = query.additionals?.find((record): record is OptAnswer => record.type === 'OPT');
  const edns: OptAnswer[] =
    asked === undefined
      ? []
      : [
          {
            type: 'OPT',
            name: '.',
            udpPayloadSize: MAX_UDP_BYTES,
            extendedRcode: 0,
            ednsVersion: 0,
            flags: 0,
            flag_do: false,
            options: [],
          },
        ];
  const flags =
    AUTHORITATIVE_ANSWER | RECURSION_AVAILABLE | ((query.flags ?? 0) & RECURSION_DESIRED) | resolution.rcode;
  const base = { type: 'response' as const, id: query.id ?? 0, questions: [question] };
  const full = encode({
    ...base,
    flags,
    answers: resolution.answers,
    authorities: resolution.answers.length === 0 ? [startOfAuthority(zone)] : [],
    additionals: [...resolution.additionals, ...edns],
  });
  const limit = Math.min(MAX_UDP_BYTES, Math.max(CLASSIC_UDP_BYTES, asked?.udpPayloadSize ?? CLASSIC_UDP_BYTES));
  if (transport === 'tcp' || full.length <= limit) return full;
  return encode({ ...base, flags: flags | TRUNCATED_RESPONSE, answers: [], additionals: edns });
}

/** Tells resolvers how long they may remember that there is nothing. */
const startOfAuthority = (zone: string): SoaAnswer => ({
  name: zone,
  type: 'SOA',
  ttl: TTL_SECONDS,
  data: {
    mname: `ns.dns.${zone}`,
    rname: `hostmaster.${zone}`,
    serial: 1,
    refresh: 7200,
    retry: 1800,
    expire: 86_400,
    minimum: TTL_SECONDS,
  },
});

/** Made of the message's bytes: it may be one that cannot be decoded. */
function errorResponse(message: Buffer, rcode: number): Buffer {
  const response = Buffer.alloc(HEADER_BYTES);
  message.copy(response, 0, 0, 2);
  const opcodeAndRecursion = message.readUInt8(2) & 0x79;
  response.writeUInt8(0x80 | opcodeAndRecursion, 2);
  response.writeUInt8(0x80 | rcode, 3);
  return response;
}

async function listen(
  ip: string,
  port: number,
  answer: Responder,
  log: Log,
  signal: AbortSignal,
): Promise<{ port: number }> {
  const tcp = createServer((socket) => serveConnection(socket, answer, log));
  tcp.maxConnections = MAX_CONNECTIONS;
  const udp = createSocket(ip.includes(':') ? 'udp6' : 'udp4');
  try {
    const bound = await bind(tcp, udp, ip, port);
    udp.on('error', (error) => log.warn('the DNS socket failed', { error: error.message }));
    udp.on('message', (message, peer) => {
      answer(message, 'udp').then(
        (response) => response !== undefined && !signal.aborted && udp.send(response, peer.port, peer.address),
        (error: Error) => log.warn('a DNS question failed', { error: error.message }),
      );
    });
    const connections = new Set<Socket>();
    tcp.on('connection', (socket) => {
      connections.add(socket);
      socket.once('close', () => connections.delete(socket));
    });
    signal.addEventListener(
      'abort',
      () => {
        udp.close();
        tcp.close();
        for (const socket of connections) socket.destroy();
      },
      { once: true },
    );
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
    throw new Error(`the DNS cannot listen on ${ip}:${port}: ${message}`, { cause: error });
  }
}

/** TCP first: the port that it gets is then asked for UDP too. */
async function bind(tcp: Server, udp: UdpSocket, ip: string, port: number): Promise<number> {
  tcp.listen(port, ip);
  await once(tcp, 'listening');
  const bound = (tcp.address() as { port: number }).port;
  udp.bind(bound, ip);
  await once(udp, 'listening');
  return bound;
}

function serveConnection(socket: Socket, answer: Responder, log: Log): void {
  let pending = Buffer.alloc(0);
  socket.setTimeout(IDLE_MILLIS, () => socket.destroy());
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk) => {
    pending = Buffer.concat([pending, chunk]);
    while (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
      const end = 2 + pending.readUInt16BE(0);
      const message = pending.subarray(2, end);
      pending = pending.subarray(end);
      answer(message, 'tcp').then(
        (response) => response !== undefined && socket.writable && socket.write(withLength(response)),
        (error: Error) => log.warn('a DNS question failed', { error: error.message }),
      );
    }
  });
}
