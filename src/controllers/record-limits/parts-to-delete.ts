/** Decides which parts of records to delete because of their age or the total size. The functions are pure. */
import type { KubeObject } from '../../machinery/meta.ts';
import type { Millis } from '../../machinery/time.ts';

/** The state of one PodRecord in the memory of the controller. */
export interface Part extends KubeObject {
  podUid: string;
  /** The time of the last step or of the creation of the part, whichever is later. */
  lastAt: Millis;
  /** The length of the part's JSON. */
  bytes: number;
}

/**
 * Returns the parts of expired records, and when the next record expires; undefined if none will. `living`: UIDs of the Pods that exist.
 */
export function byAge(
  parts: readonly Part[],
  living: ReadonlySet<string>,
  ageMillis: number,
  now: Millis,
): { expired: Part[]; nextAt: Millis | undefined } {
  const lastOf = new Map<string, Millis>();
  for (const { podUid, lastAt } of parts) lastOf.set(podUid, Math.max(lastAt, lastOf.get(podUid) ?? 0));
  const expiryOf = ({ podUid }: Part): Millis =>
    living.has(podUid) ? Number.POSITIVE_INFINITY : (lastOf.get(podUid) ?? 0) + ageMillis;
  let next = Number.POSITIVE_INFINITY;
  const expired = parts.filter((part) => {
    const at = expiryOf(part);
    if (at > now) next = Math.min(next, at);
    return at <= now;
  });
  return { expired, nextAt: Number.isFinite(next) ? next : undefined };
}

/** Returns the parts that may be deleted to reduce the total size, in the order of deletion. */
export function bySize(parts: readonly Part[], living: ReadonlySet<string>): Part[] {
  const newest = new Map<string, Part>();
  for (const part of parts) {
    const known = newest.get(part.podUid);
    if (known === undefined || numberOf(part) > numberOf(known)) newest.set(part.podUid, part);
  }
  const rank = (part: Part): number => (living.has(part.podUid) ? 1 : 0);
  return parts
    .filter((part) => rank(part) === 0 || newest.get(part.podUid) !== part)
    .sort((a, b) => rank(a) - rank(b) || a.lastAt - b.lastAt || numberOf(a) - numberOf(b));
}

/** Returns the parts to delete to free at least `excessBytes`. If this is not possible, returns all parts that may be deleted. */
export function excessParts(parts: readonly Part[], living: ReadonlySet<string>, excessBytes: number): Part[] {
  let left = excessBytes;
  return bySize(parts, living).filter((part) => {
    const isExcess = left > 0;
    if (isExcess) left -= part.bytes;
    return isExcess;
  });
}

const numberOf = ({ metadata }: Part): number => Number(metadata.name.split('.').at(-1));
