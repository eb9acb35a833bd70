/**
 * Sends response bodies. A long body is written in pieces, and the next piece waits while the client's connection is full. Long responses
 * to GET requests are compressed if the client accepts gzip.
 */
import { once } from 'node:events';
import { createGzip } from 'node:zlib';
import { STALLED_MILLIS } from './bounds/outgoing.ts';
import { turnOf } from './bounds/turns.ts';
import { acceptsGzip, type Exchange, startAnswer } from './exchange.ts';
import { drainedOrClosed } from './wait-for-drain.ts';

/** The length of a piece of a long body, in UTF-16 code units or bytes. The event loop serves other clients between two pieces. */
export const PIECE_CHARS = 64 * 1024;
/** A shorter body is written as a whole, without compression. Source: upstream compresses bodies of at least 128 KiB. */
export const WHOLE_CHARS = 128 * 1024;
/** The fastest level, because speed matters more than size within one network. */
const GZIP_LEVEL = 1;
/** An estimate of the memory of one compressor. */
const GZIP_BYTES = 300 * 1024;

/**
 * Splits the concatenated texts into pieces of about PIECE_CHARS characters, never within a surrogate pair. The last piece may be shorter.
 */
export function* evenly(texts: Iterable<string>): Generator<string> {
  let piece = '';
  for (const text of texts) {
    let at = 0;
    while (piece.length + text.length - at >= PIECE_CHARS) {
      let end = at + PIECE_CHARS - piece.length;
      const last = text.charCodeAt(end - 1);
      if (last >= 0xd800 && last < 0xdc00) end -= 1;
      yield piece + text.slice(at, end);
      piece = '';
      at = end;
    }
    piece += text.slice(at);
  }
  if (piece !== '') yield piece;
}

export function* evenBytes(parts: Iterable<Uint8Array>): Generator<Uint8Array> {
  let waiting: Uint8Array[] = [];
  let length = 0;
  for (const part of parts) {
    let at = 0;
    while (length + part.length - at >= PIECE_CHARS) {
      const end = at + PIECE_CHARS - length;
      waiting.push(part.subarray(at, end));
      yield joined(waiting);
      waiting = [];
      length = 0;
      at = end;
    }
    if (at < part.length) waiting.push(part.subarray(at));
    length += part.length - at;
  }
  if (length > 0) yield joined(waiting);
}

const joined = (parts: readonly Uint8Array[]): Uint8Array =>
  parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts);

function piecesOf(parts: Iterable<string | Uint8Array>): Generator<string | Uint8Array> {
  const iterator = parts[Symbol.iterator]();
  const first = iterator.next();
  const all = (function* () {
    if (first.done !== true) yield first.value;
    yield* { [Symbol.iterator]: () => iterator };
  })();
  return typeof first.value === 'string' ? evenly(all as Iterable<string>) : evenBytes(all as Iterable<Uint8Array>);
}

/**
 * Sends the concatenated parts, which are either all texts or all bytes. After the first WHOLE_CHARS characters, takes parts only as fast
 * as the client reads, and closes the connection if the client does not read the waiting bytes within STALLED_MILLIS.
 */
export async function sendParts(
  exchange: Exchange,
  code: number,
  contentType: string,
  parts: Iterable<string | Uint8Array>,
): Promise<void> {
  const short = Array.isArray(parts) ? shortBody(parts) : undefined;
  if (short !== undefined) return sendWhole(exchange, code, contentType, short);
  const pieces = piecesOf(parts);
  const first: (string | Uint8Array)[] = [];
  let length = 0;
  for (let next = pieces.next(); next.done !== true; next = pieces.next()) {
    first.push(next.value);
    length += next.value.length;
    if (length >= WHOLE_CHARS) return sendPieces(exchange, code, contentType, first, pieces);
  }
  return sendWhole(exchange, code, contentType, wholeOf(first));
}

const wholeOf = (parts: readonly (string | Uint8Array)[]): string | Uint8Array =>
  typeof parts[0] === 'string'
    ? (parts as string[]).reduce((whole, part) => whole + part)
    : joined(parts as Uint8Array[]);

function shortBody(parts: readonly (string | Uint8Array)[]): string | Uint8Array | undefined {
  let length = 0;
  for (const part of parts) length += part.length;
  return length < WHOLE_CHARS ? wholeOf(parts) : undefined;
}

function sendWhole(exchange: Exchange, code: number, contentType: string, body: string | Uint8Array): void {
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
  startAnswer(exchange, code, { 'Content-Type': contentType, 'Content-Length': length });
  exchange.outgoing.end(body);
}

async function sendPieces(
  exchange: Exchange,
  code: number,
  contentType: string,
  first: readonly (string | Uint8Array)[],
  rest: Iterable<string | Uint8Array>,
): Promise<void> {
  const { response, outgoing } = exchange;
  const compressed = exchange.method === 'GET' && acceptsGzip(exchange.request);
  const headers = { 'Content-Type': contentType };
  startAnswer(
    exchange,
    code,
    compressed ? { ...headers, 'Content-Encoding': 'gzip', Vary: 'Accept-Encoding' } : headers,
  );
  const sink = compressed
    ? gzipTo(exchange)
    : { write: (piece: string | Uint8Array) => passOn(exchange, piece), end: async () => {} };
  for (const piece of first) await sink.write(piece);
  for (const piece of rest) {
    if (response.destroyed) break;
    await sink.write(piece);
    // Let the event loop serve other clients, even if this client reads immediately.
    await turnOf(exchange.user);
  }
  await sink.end();
  outgoing.end();
}

export async function sendGzipped(exchange: Exchange, contentType: string, gzipped: Uint8Array): Promise<void> {
  const headers = { 'Content-Type': contentType, 'Content-Encoding': 'gzip', 'Content-Length': gzipped.length };
  startAnswer(exchange, 200, headers);
  for (const piece of evenBytes([gzipped])) {
    if (exchange.response.destroyed) break;
    await passOn(exchange, piece);
    await turnOf(exchange.user);
  }
  exchange.outgoing.end();
}

async function passOn({ outgoing }: Exchange, piece: string | Uint8Array): Promise<void> {
  if (!outgoing.write(piece)) await outgoing.ready(STALLED_MILLIS);
}

function gzipTo(exchange: Exchange): { write(piece: string | Uint8Array): Promise<void>; end(): Promise<void> } {
  const { response, outgoing } = exchange;
  const gzip = createGzip({ level: GZIP_LEVEL });
  outgoing.keep(gzip, GZIP_BYTES);
  const stop = (): void => void gzip.destroy();
  response.once('close', stop);
  gzip.on('data', (data: Buffer) => {
    if (outgoing.write(data)) return;
    gzip.pause();
    void outgoing.ready(STALLED_MILLIS).then(() => gzip.resume());
  });
  return {
    async write(piece) {
      if (!gzip.destroyed && !gzip.write(piece)) await drainedOrClosed(gzip);
    },
    async end() {
      if (!gzip.destroyed) {
        const closed = once(gzip, 'close');
        gzip.end();
        await closed;
      }
      response.off('close', stop);
      outgoing.drop(gzip, GZIP_BYTES);
    },
  };
}

export const sendBody = (exchange: Exchange, code: number, contentType: string, body: string): Promise<void> =>
  sendParts(exchange, code, contentType, [body]);

export const sendJson = (exchange: Exchange, code: number, body: unknown): Promise<void> =>
  sendBody(exchange, code, 'application/json', `${JSON.stringify(body)}\n`);

export const sendText = (exchange: Exchange, code: number, text: string): Promise<void> =>
  sendBody(exchange, code, 'text/plain; charset=utf-8', text);
