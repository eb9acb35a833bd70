import type { IncomingMessage } from 'node:http';
import { badRequest, requestEntityTooLarge, tooManyRequests } from '../../machinery/status.ts';
import type { UserInfo } from '../../ports/request.ts';
import { hasArrived } from './bounds/late-bodies.ts';
import type { CompletePart, Unfinished } from './bounds/unfinished.ts';
import type { Exchange } from './exchange.ts';

/** Upstream has the same limit. */
const BODY_LIMIT_BYTES = 3 * 1024 * 1024;

type Sender = Pick<Exchange, 'request' | 'user'>;

export interface BodyReader {
  /**
   * Reads the body and resolves to the result of `use`. The body counts as a complete part (see unfinished.ts) until `use` ends, except
   * while `use` has given up the room (see waits.ts). Rejects with 413 RequestEntityTooLarge above BODY_LIMIT_BYTES, with 429
   * TooManyRequests if this body must make room for others, and with 400 BadRequest if the connection ends before `use` is called.
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

/** Most bodies arrive with the head of the request. Returns undefined if the body is incomplete or too long, or has no room yet. */
function arrived(request: IncomingMessage, user: UserInfo, unfinished: Unfinished): Received | undefined {
  if (!hasArrived(request) || request.destroyed || request.readableLength > BODY_LIMIT_BYTES) return undefined;
  const part = unfinished.completed(request.readableLength, user.name);
  if (part === undefined) return undefined;
  const body = (request.read() as Buffer | null) ?? NO_BODY;
  // Without resume(), the request would never emit `end`.
  request.resume();
  return { body, part };
}

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

function enlarged(bytes: Buffer, atLeast: number): Buffer {
  const larger = Buffer.allocUnsafe(Math.min(Math.max(2 * bytes.length, atLeast), BODY_LIMIT_BYTES));
  bytes.copy(larger);
  return larger;
}
