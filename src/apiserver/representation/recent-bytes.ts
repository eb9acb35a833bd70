/** Keeps the bytes of recent watch events, so that an event is encoded once for all watches that send it at about the same time. */
import type { WatchEvent } from '../../ports/backend.ts';

/** The limit on the kept bytes of each representation. The events, whose objects the cache may have replaced, take as much memory again. */
const KEPT_BYTES = 1024 * 1024;

/**
 * Returns a function like `encode` that keeps at most `limit` bytes of recent events. Watches with the same representation share the
 * WatchEvent objects, so the object identifies the event.
 */
export function sharedBytes(
  encode: (event: WatchEvent) => Uint8Array,
  limit = KEPT_BYTES,
): (event: WatchEvent) => Uint8Array {
  const recent = new Map<WatchEvent, Uint8Array>();
  let kept = 0;
  return (event) => {
    const known = recent.get(event);
    if (known !== undefined) return known;
    const encoded = encode(event);
    // Copy the bytes: otherwise, they would keep the whole block of memory alive that Node.js has allocated for many short-lived buffers.
    const bytes = Buffer.allocUnsafeSlow(encoded.length);
    bytes.set(encoded);
    recent.set(event, bytes);
    kept += bytes.length;
    for (const [oldest, { length }] of recent) {
      if (kept <= limit) break;
      recent.delete(oldest);
      kept -= length;
    }
    return bytes;
  };
}
