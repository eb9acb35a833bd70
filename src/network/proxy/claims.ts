/**
 * Records which Services claim an address and port. The oldest of them has it. Claimants are found by a binary search, because a client can
 * create thousands of Services with the same claim.
 */
import type { Service } from '../../api/generated/types.ts';

export interface Claimant {
  /** `<namespace>/<name>` of the Service. */
  key: string;
  /** Sorts Services, the oldest first. */
  age: string;
}

export const claimantOf = (key: string, { metadata }: Service): Claimant => ({
  key,
  age: `${metadata.creationTimestamp ?? ''} ${key}`,
});

export class Claims {
  /** The oldest claimant comes first. No list is empty. */
  readonly #claimants = new Map<string, Claimant[]>();

  /** Returns whether the Service has the claimed address and port, or would have them if it claimed them. */
  mayHave(claim: string, { key, age }: Claimant): boolean {
    const [first, second] = this.#claimants.get(claim) ?? [];
    const rival = first?.key === key ? second : first;
    return rival === undefined || age < rival.age;
  }

  /** Returns the key of the Service that loses the claimed address and port to the claimant; undefined if none does. */
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

  /** Returns the key of the Service that gets the claimed address and port; undefined if none does. */
  remove(claim: string, claimant: Claimant): string | undefined {
    const claimants = this.#claimants.get(claim) ?? [];
    const index = placeOf(claimant, claimants);
    if (claimants[index]?.key !== claimant.key) return undefined;
    claimants.splice(index, 1);
    if (claimants.length === 0) this.#claimants.delete(claim);
    return index === 0 ? claimants[0]?.key : undefined;
  }
}

function placeOf({ age }: Claimant, claimants: readonly Claimant[]): number {
  let [from, to] = [0, claimants.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((claimants[middle] as Claimant).age < age) from = middle + 1;
    else to = middle;
  }
  return from;
}
