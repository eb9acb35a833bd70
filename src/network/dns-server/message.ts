/**
 * Reads DNS messages (RFC 1035, EDNS of RFC 6891).
 *
 * Invariant: the time and memory for a message are proportional to its length. Therefore the number of records in a query is limited before
 * they are read, names have at most 255 bytes, and a compression pointer must point backwards.
 */

export const RCODE = {
  noError: 0,
  formatError: 1,
  serverFailure: 2,
  nameError: 3,
  notImplemented: 4,
  refused: 5,
  /** An extended code: its upper bits are in the OPT record. Source: RFC 6891. */
  badVersion: 16,
} as const;

export const TYPE = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  TXT: 16,
  AAAA: 28,
  SRV: 33,
  OPT: 41,
  IXFR: 251,
  AXFR: 252,
  ANY: 255,
} as const;

export const CLASS_IN = 1;
export const HEADER_BYTES = 12;

/** The bits of the third and fourth byte of a header, as one number. */
export const FLAG = {
  response: 0x8000,
  authoritative: 0x0400,
  truncated: 0x0200,
  recursionDesired: 0x0100,
  recursionAvailable: 0x0080,
  checkingDisabled: 0x0010,
} as const;
const OPCODE = 0x7800;

const MAX_LABEL_BYTES = 63;
const MAX_NAME_BYTES = 255;
const POINTER = 0xc0;

export interface Edns {
  /** The largest response over UDP that the client accepts. */
  udpBytes: number;
  version: number;
  wantsSignatures: boolean;
}

export interface Query {
  id: number;
  flags: number;
  /** The bytes of the question's name, type and class, as the client sent them. */
  question: Buffer;
  /** The labels of the name in lower case, first label first, one character per byte. */
  labels: string[];
  /** The bytes of the name in lower case, one character per byte. Different names have different keys. */
  key: string;
  type: number;
  class: number;
  edns: Edns | undefined;
}

/**
 * `error`: the client gets a response with this code. `ignored`: the message is not a query, and a response could start an endless
 * exchange.
 */
export type ParsedQuery = { kind: 'query'; query: Query } | { kind: 'error'; rcode: number } | { kind: 'ignored' };

/** Parses a message of a client. Never throws. */
export function parseQuery(message: Buffer): ParsedQuery {
  if (message.length < HEADER_BYTES) return { kind: 'ignored' };
  const flags = message.readUInt16BE(2);
  if ((flags & FLAG.response) !== 0) return { kind: 'ignored' };
  if ((flags & OPCODE) !== 0) return { kind: 'error', rcode: RCODE.notImplemented };
  const formatError = { kind: 'error', rcode: RCODE.formatError } as const;
  if (!isShort(message)) return formatError;
  const name = readName(message, HEADER_BYTES, false);
  if (name === undefined || name.end + 4 > message.length) return formatError;
  const edns = readEdns(message, name.end + 4);
  if (edns === 'malformed') return formatError;
  return {
    kind: 'query',
    query: {
      id: message.readUInt16BE(0),
      flags,
      question: message.subarray(HEADER_BYTES, name.end + 4),
      labels: name.labels,
      key: name.key,
      type: message.readUInt16BE(name.end),
      class: message.readUInt16BE(name.end + 2),
      edns,
    },
  };
}

/** Whether the header announces one question, and at most one answer, one authority and two additional records. */
const isShort = (message: Buffer): boolean =>
  message.readUInt16BE(4) === 1 &&
  message.readUInt16BE(6) <= 1 &&
  message.readUInt16BE(8) <= 1 &&
  message.readUInt16BE(10) <= 2;

function readEdns(message: Buffer, from: number): Edns | undefined | 'malformed' {
  let edns: Edns | undefined;
  const records = readRecords(message, from);
  if (records === undefined) return 'malformed';
  for (const { section, type, class: udpBytes, ttl, isRoot } of records) {
    if (type !== TYPE.OPT) continue;
    if (section !== 'additional' || edns !== undefined || !isRoot) return 'malformed';
    edns = { udpBytes, version: (ttl >>> 16) & 0xff, wantsSignatures: (ttl & 0x8000) !== 0 };
  }
  return edns;
}

export interface RecordPosition {
  section: 'answer' | 'authority' | 'additional';
  type: number;
  class: number;
  ttl: number;
  isRoot: boolean;
  start: number;
  ttlAt: number;
  dataAt: number;
  end: number;
}

/**
 * Returns the positions of all records, the first of which begins at `from`; undefined if the message is malformed. Compression pointers
 * are not followed.
 */
export function readRecords(message: Buffer, from: number): RecordPosition[] | undefined {
  const records: RecordPosition[] = [];
  const sections = ['answer', 'authority', 'additional'] as const;
  let at = from;
  for (const [index, section] of sections.entries()) {
    for (let left = message.readUInt16BE(6 + 2 * index); left > 0; left--) {
      const start = at;
      const nameEnd = skipName(message, at);
      if (nameEnd === undefined || nameEnd + 10 > message.length) return undefined;
      const end = nameEnd + 10 + message.readUInt16BE(nameEnd + 8);
      if (end > message.length) return undefined;
      records.push({
        section,
        type: message.readUInt16BE(nameEnd),
        class: message.readUInt16BE(nameEnd + 2),
        ttl: message.readUInt32BE(nameEnd + 4),
        isRoot: nameEnd === start + 1,
        start,
        ttlAt: nameEnd + 4,
        dataAt: nameEnd + 10,
        end,
      });
      at = end;
    }
  }
  return records;
}

function skipName(message: Buffer, from: number): number | undefined {
  let at = from;
  while (at < message.length) {
    const length = message[at] as number;
    if (length === 0) return at + 1;
    if (length >= POINTER) return at + 2 <= message.length ? at + 2 : undefined;
    if (length > MAX_LABEL_BYTES) return undefined;
    at += 1 + length;
    if (at - from > MAX_NAME_BYTES) return undefined;
  }
  return undefined;
}

export interface Name {
  /** See Query. */
  labels: string[];
  key: string;
  end: number;
}

/** Returns undefined if the name at `from` is malformed, or has a compression pointer although `mayPoint` is false. */
export function readName(message: Buffer, from: number, mayPoint: boolean): Name | undefined {
  const labels: string[] = [];
  let key = '';
  let end: number | undefined;
  let at = from;
  let lowest = from;
  let bytes = 1;
  while (at < message.length) {
    const length = message[at] as number;
    if (length === 0) return { labels, key, end: end ?? at + 1 };
    if (length >= POINTER) {
      if (!mayPoint || at + 2 > message.length) return undefined;
      const target = message.readUInt16BE(at) & 0x3fff;
      // Each pointer must point before the previous part of the name, so that no name is endless.
      if (target >= lowest) return undefined;
      end ??= at + 2;
      at = target;
      lowest = target;
      continue;
    }
    bytes += 1 + length;
    if (length > MAX_LABEL_BYTES || bytes > MAX_NAME_BYTES || at + 1 + length > message.length) return undefined;
    const label = lowerCase(message, at + 1, at + 1 + length);
    labels.push(label);
    key += String.fromCharCode(length) + label;
    at += 1 + length;
  }
  return undefined;
}

/** DNS ignores the case of ASCII letters only. */
function lowerCase(message: Buffer, start: number, end: number): string {
  const text = message.toString('latin1', start, end);
  return /[A-Z]/.test(text) ? text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase()) : text;
}
