/**
 * Counts the memory that answers to slow clients hold alone: objects that the cache has dropped, because they were updated or deleted,
 * while an answer with them waits. As long as the cache holds an object too, an answer costs no more than a reference to it.
 *
 * Invariant: if more than the budget is held, the answer that holds the most is cut, then the next one. An object that several answers
 * hold counts once.
 */
import type { KubeObject } from '../../../machinery/meta.ts';
import { objectBytes } from '../../cache/stored-object.ts';

const BUDGET_BYTES = 128 * 1024 * 1024;
/** The memory of a reference from an answer to an object. */
const REFERENCE_BYTES = 64;

/** The objects of one answer. */
export interface Holder {
  /** Counts an object until it is released. Each object is held once at a time. */
  hold(object: KubeObject): void;
  release(object: KubeObject): void;
  releaseAll(): void;
}

export interface HeldObjects {
  /** `cut` ends the answer. */
  open(cut: (heldBytes: number) => void): Holder;
  /** The cache has dropped the object. */
  dropped(object: KubeObject): void;
  /** The bytes that are held now. */
  bytes(): number;
}

interface Held {
  objects: Set<KubeObject>;
  bytes: number;
  cut(heldBytes: number): void;
}

export function createHeldObjects(limit = BUDGET_BYTES): HeldObjects {
  const holders = new Map<KubeObject, Set<Held>>();
  const dropped = new WeakSet<KubeObject>();
  const all = new Set<Held>();
  let total = 0;

  /** The bytes that the object takes beside the references to it. */
  const own = (object: KubeObject): number => (dropped.has(object) ? objectBytes(object) : 0);
  const release = (held: Held, object: KubeObject): void => {
    if (!held.objects.delete(object)) return;
    const by = holders.get(object) as Set<Held>;
    by.delete(held);
    held.bytes -= REFERENCE_BYTES + own(object);
    total -= REFERENCE_BYTES + (by.size === 0 ? own(object) : 0);
    if (by.size === 0) holders.delete(object);
  };
  const releaseAll = (held: Held): void => {
    for (const object of held.objects) release(held, object);
    all.delete(held);
  };
  const check = (): void => {
    while (total > limit) {
      const largest = [...all].reduce((most, held) => (held.bytes > most.bytes ? held : most));
      const { bytes } = largest;
      releaseAll(largest);
      largest.cut(bytes);
    }
  };
  return {
    bytes: () => total,
    open(cut) {
      const held: Held = { objects: new Set(), bytes: 0, cut };
      return {
        hold(object) {
          if (held.objects.has(object)) return;
          all.add(held);
          held.objects.add(object);
          const by = holders.get(object) ?? new Set();
          held.bytes += REFERENCE_BYTES + own(object);
          total += REFERENCE_BYTES + (by.size === 0 ? own(object) : 0);
          holders.set(object, by.add(held));
          check();
        },
        release: (object) => release(held, object),
        releaseAll: () => releaseAll(held),
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
