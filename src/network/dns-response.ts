/** Encodes the DNS server's own responses, within the size limit of the transport. */
import {
  type Answer,
  AUTHORITATIVE_ANSWER,
  encode,
  encodingLength,
  type OptAnswer,
  type Packet,
  type Question,
  RECURSION_AVAILABLE,
  RECURSION_DESIRED,
  type SoaAnswer,
  TRUNCATED_RESPONSE,
} from 'dns-packet';
import { TTL_SECONDS } from './zone.ts';

const HEADER_BYTES = 12;
const CLASSIC_UDP_BYTES = 512;
/** Messages up to this size are never fragmented in practice. Source: DNS flag day 2020. */
const MAX_UDP_BYTES = 1232;
/** Over TCP, the length of a message is sent as two bytes. */
const MAX_TCP_BYTES = 65_535;

export interface Answers {
  rcode: number;
  answers: Answer[];
  additionals: Answer[];
}

/**
 * Encodes a response. If the response is too long, truncates it: over UDP to no answers, so that the client retries over TCP; over TCP
 * to the answers that fit.
 */
export function respond(
  query: Packet,
  question: Question,
  { rcode, answers, additionals }: Answers,
  transport: 'udp' | 'tcp',
  zone: string,
): Buffer {
  const asked = query.additionals?.find((record): record is OptAnswer => record.type === 'OPT');
  const edns: OptAnswer[] = asked === undefined ? [] : [ownOpt()];
  const flags = AUTHORITATIVE_ANSWER | RECURSION_AVAILABLE | ((query.flags ?? 0) & RECURSION_DESIRED) | rcode;
  const base = { type: 'response' as const, id: query.id ?? 0, questions: [question] };
  const rest = {
    authorities: answers.length === 0 ? [startOfAuthority(zone)] : [],
    additionals: [...additionals, ...edns],
  };
  const limit =
    transport === 'tcp'
      ? MAX_TCP_BYTES
      : Math.min(MAX_UDP_BYTES, Math.max(CLASSIC_UDP_BYTES, asked?.udpPayloadSize ?? CLASSIC_UDP_BYTES));
  const room = limit - encodingLength({ ...base, ...rest });
  const fitting = thatFit(answers, room);
  if (room >= 0 && fitting.length === answers.length) return encode({ ...base, flags, answers, ...rest });
  const cut = { ...base, flags: flags | TRUNCATED_RESPONSE };
  return transport === 'tcp'
    ? encode({ ...cut, answers: fitting, ...rest })
    : encode({ ...cut, answers: [], additionals: edns });
}

/** Returns the first answers that fit into `room` bytes. Measures none after the first that does not fit: there may be thousands. */
function thatFit(answers: Answer[], room: number): Answer[] {
  let left = room;
  const tooMany = answers.findIndex((answer) => {
    left -= encodingLength({ answers: [answer] }) - HEADER_BYTES;
    return left < 0;
  });
  return tooMany === -1 ? answers : answers.slice(0, tooMany);
}

const ownOpt = (): OptAnswer => ({
  type: 'OPT',
  name: '.',
  udpPayloadSize: MAX_UDP_BYTES,
  extendedRcode: 0,
  ednsVersion: 0,
  flags: 0,
  flag_do: false,
  options: [],
});

/** Returns the SOA record of a negative answer. The record defines how long resolvers may cache the answer. */
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

/**
 * Returns a response without a question or records. It is built from the bytes of the header, because the message may not be
 * decodable.
 */
export function errorResponse(message: Buffer, rcode: number): Buffer {
  const response = Buffer.alloc(HEADER_BYTES);
  message.copy(response, 0, 0, 2);
  const opcodeAndRecursion = message.readUInt8(2) & 0x79;
  response.writeUInt8(0x80 | opcodeAndRecursion, 2);
  response.writeUInt8(0x80 | rcode, 3);
  return response;
}
