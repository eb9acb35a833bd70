import { CLASS_IN, FLAG, HEADER_BYTES, type Query, RCODE, readName, readRecords, TYPE } from './message.ts';
import { limitOf, responseFlags, type Transport, writeOpt } from './response.ts';
import type { ZoneRecord } from './zone.ts';

const OPT_BYTES = 11;
/** Two names of one byte each, and five numbers of four bytes each. */
const SHORTEST_SOA_BYTES = 22;
/** The bit AD. In a query, the client asks for this bit; in a response, the server has verified the DNSSEC signatures. Source: RFC 6840. */
const AUTHENTIC = 0x0020;

export interface ForeignResponse {
  /** The message without its OPT record, which applies only between a client and the server that it asks. */
  message: Buffer;
  rcode: number;
  isTruncated: boolean;
  /** The positions of the TTLs in `message`. */
  ttls: readonly number[];
  /** How long the response may be reused; 0 if it may not be reused. */
  lifetimeSeconds: number;
}

/** A limit on the reuse of a response, whatever its TTLs. Source: kubeadm's Corefile (`cache 30`). */
const LONGEST_SECONDS = 30;
/** A failure is remembered for this time, so that clients that retry do not overload a broken server. Source: RFC 9520. */
const FAILURE_SECONDS = 1;

/** Returns the query for a name server. The EDNS options of the client are not forwarded. */
export function forwardedQuery(query: Query): Buffer {
  const { question, flags } = query;
  const message = Buffer.alloc(HEADER_BYTES + question.length + OPT_BYTES);
  message.writeUInt16BE(flags & (FLAG.recursionDesired | FLAG.checkingDisabled | AUTHENTIC), 2);
  message.writeUInt16BE(1, 4);
  message.writeUInt16BE(1, 10);
  question.copy(message, HEADER_BYTES);
  writeOpt(message, HEADER_BYTES + question.length, query, 0);
  return message;
}

/** Parses the response of a name server. Returns undefined if it is malformed or does not answer the question of the query. */
export function readForeign(message: Buffer, query: Query): ForeignResponse | undefined {
  if (message.length < HEADER_BYTES || (message.readUInt16BE(2) & FLAG.response) === 0) return undefined;
  const rcode = message.readUInt16BE(2) & 0xf;
  const isTruncated = (message.readUInt16BE(2) & FLAG.truncated) !== 0;
  const questionEnd = HEADER_BYTES + query.question.length;
  // A server that does not understand the message may return only the header.
  const isBare = message.readUInt16BE(4) === 0 && rcode !== RCODE.noError && message.length === HEADER_BYTES;
  if (isBare) return { message: withoutRecords(query, rcode), rcode, isTruncated, ttls: [], lifetimeSeconds: 0 };
  if (message.readUInt16BE(4) !== 1 || !isSameQuestion(message, query)) return undefined;
  const records = readRecords(message, questionEnd);
  if (records === undefined) return undefined;
  const opt = records.findIndex(({ type }) => type === TYPE.OPT);
  const kept = opt === -1 ? records : records.slice(0, opt);
  const end = kept.at(-1)?.end ?? questionEnd;
  const own = Buffer.from(message.subarray(0, end));
  for (const [i, section] of (['answer', 'authority', 'additional'] as const).entries())
    own.writeUInt16BE(kept.filter((record) => record.section === section).length, 6 + 2 * i);
  const soa = kept.find(({ section, type }) => section === 'authority' && type === TYPE.SOA);
  const minimum =
    soa === undefined || soa.end - soa.dataAt < SHORTEST_SOA_BYTES ? undefined : message.readUInt32BE(soa.end - 4);
  const answers = kept.filter(({ section }) => section === 'answer');
  return {
    message: own,
    rcode,
    isTruncated,
    ttls: kept.map(({ ttlAt }) => ttlAt),
    lifetimeSeconds: isTruncated
      ? 0
      : lifetime(
          rcode,
          answers.map(({ ttl }) => ttl),
          soa === undefined || minimum === undefined ? undefined : Math.min(soa.ttl, minimum),
          answers.some(({ type }) => type === query.type || query.type === TYPE.ANY),
        ),
  };
}

/**
 * Returns for how many seconds the response may be reused; 0 if it may not. A negative answer may be reused only if it has an SOA record.
 * Source: RFC 2308.
 */
function lifetime(
  rcode: number,
  ttls: readonly number[],
  negativeSeconds: number | undefined,
  isPositive: boolean,
): number {
  if (rcode !== RCODE.noError && rcode !== RCODE.nameError)
    return rcode === RCODE.serverFailure || rcode === RCODE.refused ? FAILURE_SECONDS : 0;
  const isNegative = rcode === RCODE.nameError || !isPositive;
  const limits = isNegative ? [...ttls, negativeSeconds ?? 0] : ttls;
  return Math.min(LONGEST_SECONDS, ...limits.slice(0, 1000).map((ttl) => (ttl > 0x7fffffff ? 0 : ttl)));
}

function isSameQuestion(message: Buffer, query: Query): boolean {
  const name = readName(message, HEADER_BYTES, false);
  return (
    name?.key === query.key &&
    message.length >= name.end + 4 &&
    message.readUInt16BE(name.end) === query.type &&
    message.readUInt16BE(name.end + 2) === query.class
  );
}

function withoutRecords(query: Query, rcode: number): Buffer {
  const message = Buffer.alloc(HEADER_BYTES + query.question.length);
  message.writeUInt16BE(FLAG.response | rcode, 2);
  message.writeUInt16BE(1, 4);
  query.question.copy(message, HEADER_BYTES);
  return message;
}

/**
 * Returns the response for one client, with the ID, question and EDNS of its query. A response that is too long for the client is sent
 * without records and marked as truncated. `ageSeconds`: the time since the name server responded.
 */
export function relay(foreign: ForeignResponse, query: Query, ageSeconds: number, transport: Transport): Buffer {
  const optBytes = query.edns === undefined ? 0 : OPT_BYTES;
  const fits = foreign.message.length + optBytes <= limitOf(query, transport);
  const questionEnd = HEADER_BYTES + query.question.length;
  const length = fits ? foreign.message.length : questionEnd;
  const own = Buffer.alloc(length + optBytes);
  foreign.message.copy(own, 0, 0, length);
  query.question.copy(own, HEADER_BYTES);
  own.writeUInt16BE(query.id, 0);
  const isCut = !fits || foreign.isTruncated;
  const kept = foreign.message.readUInt16BE(2) & AUTHENTIC;
  own.writeUInt16BE(responseFlags(query, foreign.rcode) | kept | (isCut ? FLAG.truncated : 0), 2);
  if (fits) for (const at of foreign.ttls) own.writeUInt32BE(Math.max(0, own.readUInt32BE(at) - ageSeconds), at);
  else own.fill(0, 6, HEADER_BYTES);
  if (optBytes > 0) {
    writeOpt(own, length, query, 0);
    own.writeUInt16BE(own.readUInt16BE(10) + 1, 10);
  }
  return own;
}

/**
 * Returns the CNAME, A and AAAA records of the answer among the first `most` records of the message. The list ends before a record whose
 * name or CNAME target has no unambiguous text, because a label contains a dot.
 */
export function aliasesAndAddresses({ message }: ForeignResponse, query: Query, most: number): ZoneRecord[] {
  const found: ZoneRecord[] = [];
  const records = readRecords(message, HEADER_BYTES + query.question.length) ?? [];
  for (const { section, type, class: ofClass, start, dataAt, end } of records.slice(0, most)) {
    if (section !== 'answer' || ofClass !== CLASS_IN) continue;
    const name = textAt(message, start);
    if (name === undefined) break;
    if (type === TYPE.A && end - dataAt === 4)
      found.push({ name, type: 'A', data: message.subarray(dataAt, end).join('.') });
    if (type === TYPE.AAAA && end - dataAt === 16)
      found.push({ name, type: 'AAAA', data: (message.toString('hex', dataAt, end).match(/..../g) ?? []).join(':') });
    if (type === TYPE.CNAME) {
      const data = textAt(message, dataAt);
      if (data === undefined) break;
      found.push({ name, type: 'CNAME', data });
    }
  }
  return found;
}

/**
 * Returns the SOA record of the response, which allows resolvers to cache a negative answer. The list is empty if the response has no valid
 * SOA record or may not be cached, or if a name in the record has no unambiguous text.
 */
export function negativeAuthorities({ message, rcode, lifetimeSeconds }: ForeignResponse, query: Query): ZoneRecord[] {
  if (lifetimeSeconds === 0 || (rcode !== RCODE.noError && rcode !== RCODE.nameError)) return [];
  const records = readRecords(message, HEADER_BYTES + query.question.length) ?? [];
  const found = records.find(({ section, type }) => section === 'authority' && type === TYPE.SOA);
  if (found === undefined || found.end - found.dataAt < SHORTEST_SOA_BYTES) return [];
  const [name, mname] = [textAt(message, found.start), textAt(message, found.dataAt)];
  const rname = textAt(message, readName(message, found.dataAt, true)?.end ?? message.length);
  if (name === undefined || mname === undefined || rname === undefined) return [];
  return [{ name, type: 'SOA', data: { mname, rname, serial: message.readUInt32BE(found.end - 20) } }];
}

function textAt(message: Buffer, at: number): string | undefined {
  const labels = readName(message, at, true)?.labels;
  return labels === undefined || labels.some((label) => label.includes('.')) ? undefined : labels.join('.');
}
