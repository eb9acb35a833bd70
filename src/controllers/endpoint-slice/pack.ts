/**
 * Distributes endpoints to slices so that few slices change: an endpoint stays in its slice, new endpoints first fill the slices that
 * change anyway, and the rest goes to the fullest slice with enough room or to new slices.
 * Source: reconcileByPortMapping of the package endpointslice of v1.33 (behavior).
 */
import { isDeepStrictEqual } from 'node:util';
import type { Endpoint, EndpointSlice } from '../../api/generated/types.ts';
import { endpointKey } from './desired-endpoints.ts';

/** Upstream's default of --max-endpoints-per-slice. */
export const MAX_ENDPOINTS = 100;

export interface Packed {
  /** The slices whose endpoints change, with their new endpoints; an empty list means that the slice must be deleted. */
  changed: Map<EndpointSlice, Endpoint[]>;
  created: Endpoint[][];
}

const isSame = ({ targetRef: a, ...now }: Endpoint, { targetRef: b, ...old }: Endpoint): boolean =>
  isDeepStrictEqual(now, old) && isDeepStrictEqual({ ...a, resourceVersion: '' }, { ...b, resourceVersion: '' });

/** Returns the slice with the least room that is sufficient; undefined if there is none. */
function bestSlice(slices: Iterable<EndpointSlice>, count: number): EndpointSlice | undefined {
  let best: { slice: EndpointSlice; room: number } | undefined;
  for (const slice of slices) {
    const room = MAX_ENDPOINTS - slice.endpoints.length - count;
    if (room >= 0 && room < (best?.room ?? MAX_ENDPOINTS)) best = { slice, room };
  }
  return best?.slice;
}

/** `slices`: the existing slices with the same ports. `desired`: by endpointKey(). */
export function pack(slices: readonly EndpointSlice[], desired: ReadonlyMap<string, Endpoint>): Packed {
  const rest = new Map(desired);
  const changed = new Map<EndpointSlice, Endpoint[]>();
  const unchanged = new Set<EndpointSlice>();
  for (const slice of slices) {
    const kept: Endpoint[] = [];
    let differs = false;
    for (const old of slice.endpoints) {
      const key = endpointKey(old);
      const endpoint = rest.get(key);
      if (endpoint === undefined) continue;
      kept.push(endpoint);
      // A later slice with the same endpoint loses it.
      rest.delete(key);
      differs ||= !isSame(endpoint, old);
    }
    if (differs || kept.length < slice.endpoints.length) changed.set(slice, kept);
    else unchanged.add(slice);
  }
  const left = [...rest.values()];
  const fullestFirst = [...changed.values()].filter(({ length }) => length > 0).sort((a, b) => b.length - a.length);
  for (const endpoints of fullestFirst) endpoints.push(...left.splice(0, MAX_ENDPOINTS - endpoints.length));
  const created: Endpoint[][] = [];
  while (left.length > 0) {
    const slice = left.length < MAX_ENDPOINTS ? bestSlice(unchanged, left.length) : undefined;
    const added = left.splice(0, MAX_ENDPOINTS);
    if (slice === undefined) created.push(added);
    else changed.set(slice, [...slice.endpoints, ...added]);
  }
  return { changed, created };
}
