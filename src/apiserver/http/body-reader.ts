/** Reads request bodies up to a limit. */
import type { IncomingMessage } from 'node:http';
import { badRequest, requestEntityTooLarge, tooManyRequests } from '../../machinery/status.ts';
import type { UserInfo } from '../../ports/request.ts';
import { hasArrived } from './bounds/late-bodies.ts';
import type { CompletePart, Unfinished } from './bounds/unfinished.ts';
import type { Exchange } from './exchange.ts';

/** The limit on the length of a request body. Upstream has the same limit. */
const BODY_LIMIT_BYTES = 3 * 1024 * 1024;

type Sender = Pick<Exchange, 'request' | 'user'>;

export interface BodyReader {
  /**
   * Reads the body, calls `use` with the body and its room, and resolves to the result. Rejects with 413 RequestEntityTooLarge if the body
   * exceeds BODY_LIMIT_BYTES, with 429 TooManyRequests if all parts that are being read (see unfinished.ts) are together too large and this
   * body is the largest of the user with the most bytes, and with 400 BadRequest if the connection ends before `use` is called. Does not
   * read the rest of a rejected body. Before `use` is called, the body waits for room among the complete parts. The body counts as a
   * complete part until `use` ends, because `use` may keep the decoded body. Meanwhile, `use` may give up the room while it waits (see
   * waits.ts).
   */
  read<T>(exchange: Sender, use: (body: Buffer, room: CompletePart) => Promise<T>): Promise<T>;
}

export function bodyReader(unfinished: Unfinished): BodyReader {
  return {
    async read({ request, user }, use) {
      if (Number(request.headers['content-length'] ?? 0) > BODY_LIMIT_BYTES) {
        throw requestEntityTooLarge(BODY_LIMIT_BYTES);
      }
      const { body, part } = arrived(request, user, unfinished) ?? (await receive(request, user, unfinished));
      try {
        return await use(body, part);
      } finally {
        part.end();
      }
    },
  };
}

interface Received {
  body: Buffer;
  part: CompletePart;
}

const NO_BODY: Buffer = Buffer.alloc(0);

/** Returns the body if it has arrived with the head of the request, as most bodies do, and has room at once; otherwise undefined. */
function arrived(request: IncomingMessage, user: UserInfo, unfinished: Unfinished): Received | undefined {
  if (!hasArrived(request) || request.destroyed || request.readableLength > BODY_LIMIT_BYTES) return undefined;
  const part = unfinished.completed(request.readableLength, user.name);
  if (part === undefined) return undefined;
  const body = (request.read() as Buffer | null) ?? NO_BODY;
  // Without resume(), the request would never emit `end`, because no other code reads it to its end.
  request.resume();
  return { body, part };
}

/**
 * Receives a body that has not arrived completely or has no room at once. Resolves when the body has room, and rejects like
 * BodyReader.read().
 */
async function receive(request: IncomingMessage, user: UserInfo, unfinished: Unfinished): Promise<Received> {
  // Copy the chunks into one buffer, because a chunk of one byte takes hundreds of bytes of memory.
  let body = NO_BODY;
  let bytes = 0;
  const part = await new Promise<CompletePart>((resolve, reject) => {
    const end = (): void => {
      // Node.js emits close even after a request has been read completely, so listen for the end of the connection instead.
      request.off('close', fail);
      request.socket.once('close', fail);
      reading.complete((complete) => settle(() => resolve(complete)));
    };
    const failWith = (error: Error): void =>
      settle(() => {
        reading.end();
        reject(error);
      });
    const fail = (): void => failWith(badRequest('the request body ended early'));
    const refuse = (error: Error): void => {
      request.pause();
      failWith(error);
    };
    const reading = unfinished.begin(
      () => refuse(tooManyRequests('too many bytes of requests are being read, please try again later', 1)),
      user.name,
    );
    const data = (chunk: Buffer): void => {
      if (bytes + chunk.length > BODY_LIMIT_BYTES) {
        refuse(requestEntityTooLarge(BODY_LIMIT_BYTES));
        return;
      }
      if (bytes + chunk.length > body.length) body = enlarged(body, bytes + chunk.length);
      chunk.copy(body, bytes);
      bytes += chunk.length;
      reading.add(chunk.length);
    };
    const settle = (finish: () => void): void => {
      request.off('data', data).off('end', end).off('close', fail).off('error', fail);
      request.socket.off('close', fail);
      finish();
    };
    request.on('data', data).on('end', end).on('close', fail).on('error', fail);
  });
  return { body: body.subarray(0, bytes), part };
}

/** Returns a buffer that begins with `bytes` and is twice as long, but has at least `atLeast` and at most BODY_LIMIT_BYTES bytes. */
function enlarged(bytes: Buffer, atLeast: number): Buffer {
  const larger = Buffer.allocUnsafe(Math.min(Math.max(2 * bytes.length, atLeast), BODY_LIMIT_BYTES));
  bytes.copy(larger);
  return larger;
}
