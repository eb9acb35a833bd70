/**
 * Records which Services claim an address and port. The oldest of them has it. Adding or removing a claim compares the Service with only
 * few of the others, by a binary search, because a client can create thousands of Services with the same claim.
 */
import type { Service } from '../../api/generated/types.ts';

export interface Claimant {
  /** The Service, as `<namespace>/<name>`. */
  key: string;
  /** A text by which Services are sorted, the oldest first. */
  age: string;
}

export const claimantOf = (key: string, { metadata }: Service): Claimant => ({
  key,
  age: `${metadata.creationTimestamp ?? ''} ${key}`,
});

export class Claims {
  /** The claimants by claim, the oldest first. No list is empty. */
  readonly #claimants = new Map<string, Claimant[]>();

  /** Returns whether the Service has the claimed address and port, or would have them if it claimed them. */
  mayHave(claim: string, { key, age }: Claimant): boolean {
    const [first, second] = this.#claimants.get(claim) ?? [];
    const rival = first?.key === key ? second : first;
    return rival === undefined || age < rival.age;
  }

  /** Adds a claim of a Service. Returns the key of the Service that loses the claimed address and port to it; undefined if none does. */
  add(claim: string, claimant: Claimant): string | undefined {
    const claimants = this.#claimants.get(claim);
    if (claimants === undefined) {
      this.#claimants.set(claim, [claimant]);
      return undefined;
    }
    const index = placeOf(claimant, claimants);
    if (claimants[index]?.key === claimant.key) return undefined;
    claimants.splice(index, 0, claimant);
    return index === 0 ? claimants[1]?.key : undefined;
  }

  /** Removes a claim of a Service. Returns the key of the Service that gets the claimed address and port; undefined if none does. */
  remove(claim: string, claimant: Claimant): string | undefined {
    const claimants = this.#claimants.get(claim) ?? [];
    const index = placeOf(claimant, claimants);
    if (claimants[index]?.key !== claimant.key) return undefined;
    claimants.splice(index, 1);
    if (claimants.length === 0) this.#claimants.delete(claim);
    return index === 0 ? claimants[0]?.key : undefined;
  }
}

/** Returns the index of the first of the claimants that is not older than the given one. */
function placeOf({ age }: Claimant, claimants: readonly Claimant[]): number {
  let [from, to] = [0, claimants.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((claimants[middle] as Claimant).age < age) from = middle + 1;
    else to = middle;
  }
  return from;
}
