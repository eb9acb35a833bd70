/**
 * Lets a request wait, for example in an admission plugin, without the room of its body, so that other requests can proceed. The number and
 * the memory of waiting requests are limited instead.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { untilAborted } from '../../../platform/on-abort.ts';
import type { RequestContext } from '../../../ports/request.ts';
import { structureBytes, uncachedBytes } from '../../cache/stored-object.ts';
import type { Waits } from './limits.ts';
import type { CompletePart } from './unfinished.ts';

/** `value`: the decoded body, which may have many more fields than the object that the registry makes of the body. */
export interface ReadBody {
  room: CompletePart;
  value: unknown;
}

/**
 * Returns the function `outside` of a RequestContext, which gives up the room of the body while it awaits a promise that does not settle at
 * once. The function rejects with 429 TooManyRequests if the waiting requests would exceed a limit, and with the reason of `signal` if the
 * request ends meanwhile. `body` is undefined if the body is no longer needed.
 */
export function waitsOutside(
  waits: Waits,
  signal: AbortSignal,
  body?: ReadBody,
): NonNullable<RequestContext['outside']> {
  return async (waiting, kept) => {
    // Do not give up the room for a promise that settles within one turn of the event loop.
    const isOver = await Promise.race([waiting.then(yes, yes), nextTurn(false)]);
    if (isOver) return waiting;
    // Count only the largest object: the objects before and after a change share their content, or the cache has one of them.
    const end = waits.begin(bodyBytes(body) + Math.max(0, ...kept.map(uncachedBytes)));
    body?.room.leave();
    try {
      await untilAborted(signal, waiting);
    } finally {
      // The request counts as waiting until its body has room again. If the client disconnects meanwhile, the body needs no room.
      try {
        if (body !== undefined) await untilAborted(signal, body.room.return());
      } finally {
        end();
      }
    }
  };
}

const bodyBytes = (body: ReadBody | undefined): number =>
  body === undefined ? 0 : body.room.bytes + structureBytes(body.value);

const yes = (): boolean => true;
