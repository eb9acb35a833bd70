/** Finds the parts of a section that nft(8) rejects: one Service with a text that nft does not accept must not stop all Services. */
import type { Part, Rejections, Section, SectionName } from './section.ts';

/** After this many attempts, the remaining parts count as rejected. */
const MAX_ATTEMPTS = 200;

/** Returns the names of the parts that may be left out: those with a fallback that nft has not yet accepted as the same object. */
export const candidates = (section: Section, applied: Section): string[] =>
  [...section]
    .filter(([name, part]) => part.fallback !== undefined && applied.get(name) !== part)
    .map(([name]) => name);

/** Returns the section with the fallbacks of the parts `names`, and without the parts that only these need. */
export function withFallbacks(section: Section, names: ReadonlySet<string>): Section {
  if (names.size === 0) return section;
  const unneeded = new Set<string>();
  const mark = (needs: readonly string[] = []): void => {
    for (const name of needs) {
      if (unneeded.has(name)) continue;
      unneeded.add(name);
      mark(section.get(name)?.needs);
    }
  };
  const keep = (needs: readonly string[] = []): void => {
    for (const name of needs) if (unneeded.delete(name)) keep(section.get(name)?.needs);
  };
  for (const name of names) mark(section.get(name)?.needs);
  for (const [name, { needs }] of section) if (!names.has(name) && !unneeded.has(name)) keep(needs);
  const rest = [...section].filter(([name]) => !unneeded.has(name));
  return new Map(rest.map(([name, part]) => [name, names.has(name) ? (part.fallback ?? part) : part]));
}

/**
 * Finds by bisection which of the parts nft(8) rejects. Yields the names of the parts to leave out in the next attempt. The caller passes
 * the error of nft to next(), or undefined if nft has accepted the attempt. Returns undefined if nft also rejects the section without all
 * of these parts.
 */
export function* findRejected(
  names: readonly string[],
  error: Error,
): Generator<ReadonlySet<string>, Rejections | undefined, Error | undefined> {
  const left = new Set(names);
  if (names.length === 0 || (yield left) !== undefined) return undefined;
  const without = (group: readonly string[]): ReadonlySet<string> => {
    const names = new Set(left);
    for (const name of group) names.delete(name);
    return names;
  };
  const accept = (group: readonly string[]): void => {
    for (const name of group) left.delete(name);
  };
  const rejected = new Map<string, Error>();
  const failed: { group: readonly string[]; error: Error }[] = [{ group: names, error }];
  let attempts = 0;
  for (let next = failed.pop(); next !== undefined; next = failed.pop()) {
    const { group, error } = next;
    if (group.length === 1 || attempts >= MAX_ATTEMPTS) {
      for (const name of group) rejected.set(name, error);
      continue;
    }
    const [first, second] = [group.slice(0, group.length >> 1), group.slice(group.length >> 1)];
    attempts += 2;
    const firstError = yield without(first);
    // If nft accepts the first half, it rejects something in the second.
    const secondError = firstError === undefined ? error : yield without(second);
    if (firstError === undefined) accept(first);
    else failed.push({ group: first, error: firstError });
    if (secondError === undefined) accept(second);
    else failed.push({ group: second, error: secondError });
  }
  return rejected;
}

export class RejectedParts {
  readonly #sections = new Map<SectionName, ReadonlyMap<string, { part: Part; error: Error }>>();

  of(section: SectionName): Rejections {
    return new Map([...(this.#sections.get(section) ?? [])].map(([name, { error }]) => [name, error]));
  }

  /**
   * Returns the section with the fallbacks of the rejected parts. Forgets a rejected part that the section no longer contains as the same
   * object.
   */
  without(section: SectionName, parts: Section): Section {
    const known = [...(this.#sections.get(section) ?? [])].filter(([name, { part }]) => parts.get(name) === part);
    this.#sections.set(section, new Map(known));
    return withFallbacks(parts, new Set(known.map(([name]) => name)));
  }

  add(section: SectionName, parts: Section, rejected: Rejections): void {
    const added = [...rejected].map(([name, error]) => [name, { part: parts.get(name) as Part, error }] as const);
    this.#sections.set(section, new Map([...(this.#sections.get(section) ?? []), ...added]));
  }
}
