/**
 * The Services that claim an address and port. The oldest one has it. A change compares the Service with few of those that claim the same,
 * because a client can create thousands of them: a binary search finds its place.
 */
import type { Service } from '../../api/generated/types.ts';

export interface Claimant {
  /** `<namespace>/<name>`. */
  key: string;
  /** Orders all Services, the oldest first. */
  age: string;
}

export const claimantOf = (key: string, { metadata }: Service): Claimant => ({
  key,
  age: `${metadata.creationTimestamp ?? ''} ${key}`,
});

export class Claims {
  /** By claim, the oldest first. No list is empty. */
  readonly #claimants = new Map<string, Claimant[]>();

  /** Returns whether the Service has what it claims, or would have it if it claimed it. */
  mayHave(claim: string, { key, age }: Claimant): boolean {
    const [first, second] = this.#claimants.get(claim) ?? [];
    const rival = first?.key === key ? second : first;
    return rival === undefined || age < rival.age;
  }

  /** Returns the key of the Service that loses the claim; undefined if there is none. */
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

  /** Returns the key of the Service that gets the claim; undefined if there is none. */
  remove(claim: string, claimant: Claimant): string | undefined {
    const claimants = this.#claimants.get(claim) ?? [];
    const index = placeOf(claimant, claimants);
    if (claimants[index]?.key !== claimant.key) return undefined;
    claimants.splice(index, 1);
    if (claimants.length === 0) this.#claimants.delete(claim);
    return index === 0 ? claimants[0]?.key : undefined;
  }
}

/** Returns the index of the first claimant that is not older. */
function placeOf({ age }: Claimant, claimants: readonly Claimant[]): number {
  let [from, to] = [0, claimants.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((claimants[middle] as Claimant).age < age) from = middle + 1;
    else to = middle;
  }
  return from;
}
