/**
 * Encodes the DNS server's own responses, within the size limit of the transport. Names are compressed: otherwise, a client that accepts
 * only 512 bytes, such as musl's resolver, would need TCP for the addresses of ten endpoints.
 */
import { addressBytes } from './addresses.ts';
import { CLASS_IN, FLAG, HEADER_BYTES, type Query, TYPE } from './message.ts';
import { TTL_SECONDS, type ZoneRecord } from './zone.ts';

const CLASSIC_UDP_BYTES = 512;
/** Messages up to this size are not fragmented in practice. Source: DNS flag day 2020. */
export const MAX_UDP_BYTES = 1232;
/** TCP sends the length of a message in two bytes. */
const MAX_TCP_BYTES = 65_535;
const OPT_BYTES = 11;
const MAX_POINTER = 0x3fff;

export type Transport = 'udp' | 'tcp';

export interface Response {
  rcode: number;
  /** Whether the cluster's own zone answers for the name in the question. */
  isAuthoritative: boolean;
  /** Records are already missing, for example from a truncated response of a name server. The client should repeat the query over TCP. */
  isTruncated?: boolean;
  answers: ZoneRecord[];
  authorities: ZoneRecord[];
  additionals: ZoneRecord[];
}

export const limitOf = ({ edns }: Query, transport: Transport): number =>
  transport === 'tcp'
    ? MAX_TCP_BYTES
    : Math.min(MAX_UDP_BYTES, Math.max(CLASSIC_UDP_BYTES, edns?.udpBytes ?? CLASSIC_UDP_BYTES));

/**
 * Encodes the response. If the answers and authorities do not fit, the message is marked as truncated and contains the records that fit:
 * older resolvers use them instead of repeating the query over TCP. Additional records that do not fit are omitted.
 */
export function respond(query: Query, response: Response, transport: Transport): Buffer {
  const limit = limitOf(query, transport);
  const writer = new Writer(query, limit - (query.edns === undefined ? 0 : OPT_BYTES));
  const { answers, authorities, additionals } = response;
  const counts = [0, 0, 0];
  const addAll = (section: number, all: readonly ZoneRecord[]): boolean => {
    for (const record of all) {
      if (!writer.add(record)) return false;
      counts[section] = (counts[section] ?? 0) + 1;
    }
    return true;
  };
  const isWhole = addAll(0, answers) && addAll(1, authorities);
  if (isWhole) addAll(2, additionals);
  const flags = responseFlags(query, response.rcode);
  const authority = response.isAuthoritative ? FLAG.authoritative : 0;
  return writer.finish(
    flags | authority | (isWhole && response.isTruncated !== true ? 0 : FLAG.truncated),
    counts,
    response.rcode,
  );
}

export const responseFlags = ({ flags }: Query, rcode: number): number =>
  FLAG.response | FLAG.recursionAvailable | (flags & (FLAG.recursionDesired | FLAG.checkingDisabled)) | (rcode & 0xf);

/** Writes the OPT record at the position `at`, and returns the position after the record. */
export function writeOpt(buffer: Buffer, at: number, { edns }: Query, rcode: number): number {
  buffer.writeUInt8(0, at);
  buffer.writeUInt16BE(TYPE.OPT, at + 1);
  buffer.writeUInt16BE(MAX_UDP_BYTES, at + 3);
  buffer.writeUInt32BE((((rcode >> 4) & 0xff) << 24) | (edns?.wantsSignatures ? 0x8000 : 0), at + 5);
  buffer.writeUInt16BE(0, at + 9);
  return at + OPT_BYTES;
}

class Writer {
  readonly #query: Query;
  readonly #limit: number;
  readonly #buffer: Buffer;
  /** The positions of names in the message, by their text in lower case. */
  readonly #names = new Map<string, number>();
  #at: number;

  constructor(query: Query, limit: number) {
    this.#query = query;
    this.#limit = limit;
    this.#buffer = Buffer.allocUnsafe(limit + OPT_BYTES);
    query.question.copy(this.#buffer, HEADER_BYTES);
    this.#at = HEADER_BYTES + query.question.length;
    // A dot within a label would make the text of the name ambiguous, so such a name is not stored.
    if (!query.labels.some((label) => label.includes('.'))) this.#addNames(query.labels, HEADER_BYTES);
  }

  /** Returns false and leaves the message unchanged if the record does not fit. */
  add(record: ZoneRecord): boolean {
    const start = this.#at;
    const known = this.#names.size;
    if (this.#write(record)) return true;
    this.#at = start;
    // Later names must not point to names of the record, which was not written.
    for (const name of [...this.#names.keys()].slice(known)) this.#names.delete(name);
    return false;
  }

  finish(flags: number, counts: readonly number[], rcode: number): Buffer {
    const { id, edns } = this.#query;
    const [answers = 0, authorities = 0, additionals = 0] = counts;
    const end = edns === undefined ? this.#at : writeOpt(this.#buffer, this.#at, this.#query, rcode);
    for (const [i, value] of [id, flags, 1, answers, authorities, additionals + (edns === undefined ? 0 : 1)].entries())
      this.#buffer.writeUInt16BE(value, 2 * i);
    return this.#buffer.subarray(0, end);
  }

  #write(record: ZoneRecord): boolean {
    if (record.name === undefined) this.#number(0xc000 | HEADER_BYTES, 2);
    else if (!this.#name(record.name, true)) return false;
    if (!this.#fits(10)) return false;
    this.#number(TYPE[record.type], 2);
    this.#number(CLASS_IN, 2);
    this.#number(0, 2);
    this.#number(TTL_SECONDS, 2);
    const lengthAt = this.#at;
    this.#at += 2;
    if (!this.#data(record)) return false;
    this.#buffer.writeUInt16BE(this.#at - lengthAt - 2, lengthAt);
    return true;
  }

  #data(record: ZoneRecord): boolean {
    switch (record.type) {
      case 'A':
      case 'AAAA':
        return this.#bytes(addressBytes(record.data) ?? []);
      case 'TXT':
        return this.#bytes([record.data.length, ...Buffer.from(record.data, 'latin1')]);
      case 'SRV': {
        const { priority, weight, port, target } = record.data;
        if (!this.#fits(6)) return false;
        for (const value of [priority, weight, port]) this.#number(value, 2);
        // The target must not be compressed. Source: RFC 2782.
        return this.#name(target, false);
      }
      case 'SOA': {
        const { mname, rname, serial } = record.data;
        if (!this.#name(mname, true) || !this.#name(rname, true) || !this.#fits(20)) return false;
        // After the serial: refresh, retry, expire, and the time for which resolvers may cache a negative answer. Source: RFC 2308.
        for (const value of [serial, 7200, 1800, 86_400, TTL_SECONDS]) this.#number(value, 4);
        return true;
      }
      default:
        return this.#name(record.data, true);
    }
  }

  #name(text: string, compressed: boolean): boolean {
    const labels = text === '' ? [] : text.split('.');
    const start = this.#at;
    for (let i = 0; i < labels.length; i++) {
      const pointer = compressed ? this.#names.get(labels.slice(i).join('.').toLowerCase()) : undefined;
      if (pointer !== undefined) {
        this.#addNames(labels, start, i);
        return this.#fits(2) && this.#number(0xc000 | pointer, 2);
      }
      const label = labels[i] ?? '';
      if (label.length > 63 || !this.#bytes([label.length, ...Buffer.from(label, 'latin1')])) return false;
    }
    this.#addNames(labels, start);
    return this.#bytes([0]);
  }

  /** Stores the positions of the first `count` suffixes of a name that was written at `at`, so that later names can point to them. */
  #addNames(labels: readonly string[], at: number, count = labels.length): void {
    let position = at;
    for (let i = 0; i < count && position <= MAX_POINTER; i++) {
      const text = labels.slice(i).join('.').toLowerCase();
      // If this suffix is known, so are all shorter ones.
      if (this.#names.has(text)) return;
      this.#names.set(text, position);
      position += 1 + (labels[i]?.length ?? 0);
    }
  }

  #fits(bytes: number): boolean {
    return this.#at + bytes <= this.#limit;
  }

  #bytes(bytes: readonly number[]): boolean {
    if (!this.#fits(bytes.length)) return false;
    for (const byte of bytes) this.#buffer[this.#at++] = byte;
    return true;
  }

  #number(value: number, bytes: 2 | 4): true {
    if (bytes === 2) this.#buffer.writeUInt16BE(value, this.#at);
    else this.#buffer.writeUInt32BE(value, this.#at);
    this.#at += bytes;
    return true;
  }
}

/** Returns a response that consists of the header only, because the question of the query may be missing or unreadable. */
export function errorResponse(message: Buffer, rcode: number): Buffer {
  const response = Buffer.alloc(HEADER_BYTES);
  message.copy(response, 0, 0, 2);
  const opcodeAndRecursion = message.readUInt8(2) & 0x79;
  response.writeUInt8(0x80 | opcodeAndRecursion, 2);
  response.writeUInt8(0x80 | rcode, 3);
  return response;
}
