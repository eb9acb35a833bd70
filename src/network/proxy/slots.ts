/**
 * The order of the endpoints of a port. The rules choose an endpoint for a packet by a random number, the slot of the endpoint. Endpoints
 * keep their slots when others are added or removed: otherwise one change would move all of them.
 */
import type { UsableEndpoints } from './endpoints.ts';
import { sortInSteps } from './sort-in-steps.ts';

export interface Range {
  start: number;
  count: number;
}

export interface Slots {
  targets: readonly string[];
  cluster: Range;
  local: Range;
}

export const NO_SLOTS: Slots = { targets: [], cluster: { start: 0, count: 0 }, local: { start: 0, count: 0 } };

/**
 * Assigns the slots: first the endpoints for local traffic only, then the endpoints for both policies, then the others, so that the
 * endpoints of each policy have consecutive slots. `previous`: the last result for the port.
 */
export function* assignSlots(
  { cluster, local }: Pick<UsableEndpoints, 'cluster' | 'local'>,
  previous: Slots,
): Generator<void, Slots> {
  const groups = [
    [...local].filter((target) => !cluster.has(target)),
    [...local].filter((target) => cluster.has(target)),
    [...cluster].filter((target) => !local.has(target)),
  ];
  let targets: string[] = [];
  for (const group of groups)
    targets = targets.concat(yield* keepPlaces(new Set(group), previous.targets, targets.length));
  const start = groups[0]?.length ?? 0;
  return { targets, cluster: { start, count: cluster.size }, local: { start: 0, count: local.size } };
}

/** Returns the targets of the group in an order in which as many as possible keep their slots. A slot is the index plus `start`. */
function* keepPlaces(
  group: ReadonlySet<string>,
  previous: readonly string[],
  start: number,
): Generator<void, string[]> {
  const kept = Array.from({ length: group.size }, (_, index) => {
    const old = previous[start + index];
    return old !== undefined && group.has(old) ? old : undefined;
  });
  const placed = new Set(kept);
  const others = (yield* sortInSteps([...group].filter((target) => !placed.has(target)))).values();
  return kept.map((target) => target ?? (others.next().value as string));
}
