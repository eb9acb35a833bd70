/**
 * Counts the memory that only responses to slow clients keep alive: objects that the cache has dropped while a response that contains them
 * waits. An object that is still in the cache counts only REFERENCE_BYTES per response.
 *
 * Invariant: while the total exceeds the budget, the response that holds the most bytes ends early. An object that several responses hold
 * counts once in the total.
 */
import type { KubeObject } from '../../../machinery/meta.ts';
import { objectBytes } from '../../cache/stored-object.ts';

const BUDGET_BYTES = 128 * 1024 * 1024;
const REFERENCE_BYTES = 64;

export interface Holder {
  /** Has no effect if the response already holds the object. */
  hold(object: KubeObject): void;
  release(object: KubeObject): void;
  /** Releases all objects. Afterwards, hold() has no effect. */
  close(): void;
}

export interface HeldObjects {
  /** `cut` is called if the response must end, with the number of bytes that the response held. */
  open(cut: (heldBytes: number) => void): Holder;
  /** Must be called when the cache has dropped the object: from then on, the object counts with its size. */
  dropped(object: KubeObject): void;
  bytes(): number;
}

interface Held {
  objects: Set<KubeObject>;
  bytes: number;
  closed: boolean;
  cut(heldBytes: number): void;
}

export function createHeldObjects(limit = BUDGET_BYTES): HeldObjects {
  const holders = new Map<KubeObject, Set<Held>>();
  const dropped = new WeakSet<KubeObject>();
  const all = new Set<Held>();
  let total = 0;

  const own = (object: KubeObject): number => (dropped.has(object) ? objectBytes(object) : 0);
  const release = (held: Held, object: KubeObject): void => {
    if (!held.objects.delete(object)) return;
    const by = holders.get(object) as Set<Held>;
    by.delete(held);
    held.bytes -= REFERENCE_BYTES + own(object);
    total -= REFERENCE_BYTES + (by.size === 0 ? own(object) : 0);
    if (by.size === 0) holders.delete(object);
  };
  const close = (held: Held): void => {
    held.closed = true;
    for (const object of held.objects) release(held, object);
    all.delete(held);
  };
  const check = (): void => {
    while (total > limit) {
      const largest = [...all].reduce((most, held) => (held.bytes > most.bytes ? held : most));
      const { bytes } = largest;
      close(largest);
      largest.cut(bytes);
    }
  };
  return {
    bytes: () => total,
    open(cut) {
      const held: Held = { objects: new Set(), bytes: 0, closed: false, cut };
      return {
        hold(object) {
          if (held.closed || held.objects.has(object)) return;
          all.add(held);
          held.objects.add(object);
          const by = holders.get(object) ?? new Set();
          held.bytes += REFERENCE_BYTES + own(object);
          total += REFERENCE_BYTES + (by.size === 0 ? own(object) : 0);
          holders.set(object, by.add(held));
          check();
        },
        release: (object) => release(held, object),
        close: () => close(held),
      };
    },
    dropped(object) {
      dropped.add(object);
      const by = holders.get(object);
      if (by === undefined) return;
      const bytes = objectBytes(object);
      total += bytes;
      for (const held of by) held.bytes += bytes;
      check();
    },
  };
}
