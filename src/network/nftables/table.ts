/**
 * The owner of the instance's nftables table: the only component that changes it. Other components declare sections of it.
 *
 * Boundary: section.ts defines sections; transaction.ts writes the commands; rejections.ts finds the parts that nft(8) rejects; monitor.ts
 * reports that rules were deleted. This file runs nft(8), one process for each transaction. A process costs about as much as a transaction
 * over a permanent `nft -i`, whose output does not show where the result of a command ends.
 * Invariants:
 *  1. A change of the table is one transaction: packets are matched against the old or the new rules, never against parts of both.
 *  2. The kernel keeps the table when the engine ends. A section is replaced when it is first set, and whenever its state in the kernel is
 *     unknown. This changes no connection that the kernel already tracks.
 *  3. Sections that are set during a transaction are part of the next one. Thus a burst of changes needs few transactions, without timers.
 *  4. A part that nft(8) rejects is replaced with its fallback until the component declares another object for it. If nft also rejects the
 *     section with these fallbacks, the section keeps its last rules, and other sections change.
 *  5. Sections are restored when another program has deleted some of their rules. The owner's own transactions lead to no restoration.
 *  6. A transaction that does not end fails, and leaves the state of its sections unknown.
 *  7. Other work runs while the commands of a large section are written.
 */
import { backOffMillis } from '../../client/back-off.ts';
import { pause } from '../../platform/pause.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import { CommandError } from '../../platform/processes.ts';
import { collectInTurns } from './collect-in-turns.ts';
import { followDeletions, type Monitor } from './monitor.ts';
import { check, isComplete, type ListedObject, listObjects, NftHangsError, nft, type TableOptions } from './nft.ts';
import { candidates, findRejected, RejectedParts, withFallbacks } from './rejections.ts';
import { type Rejections, SECTIONS, type Section, type SectionName } from './section.ts';
import { changeSection, type NamedObject, replaceSection } from './transaction.ts';

export interface NftTable {
  readonly name: string;
  /**
   * Replaces the section. Resolves when the kernel has this version of the section or a later one, with the parts that nft(8) rejects and
   * that are replaced by their fallbacks. Rejects if nft(8) rejects the section even with these fallbacks, with an NftHangsError if nft(8)
   * does not end, and with the reason of the signal if the signal aborts.
   */
  set(section: SectionName, parts: Section): Promise<Rejections>;
}

export interface OpenOptions extends TableOptions {
  /**
   * Restores the sections as soon as another program deletes rules of the table. Absent: only after a transaction has failed.
   * `renewalLength`: by default, RENEWAL_LENGTH.
   */
  watch?: { timers: Timers; log: Log; renewalLength?: number };
}

/** Returns the owner of the table `inet NAME`. Nothing is changed before a section is set. */
export function openTable(options: OpenOptions): NftTable {
  return new Owner(options);
}

/** Deletes the table, and succeeds if it does not exist. Rejects if nft(8) fails. */
export async function deleteTable(options: TableOptions): Promise<void> {
  await nft(options, ['-f', '-'], `${removal('inet', options.name)}${removal('ip', options.name)}`);
}

/** Returns commands that delete the table whether or not it exists. Older versions of lifepod had a table of the family `ip`. */
const removal = (family: 'ip' | 'inet', name: string): string =>
  `add table ${family} ${name}\ndelete table ${family} ${name}\n`;

/**
 * The monitor is renewed after commands of this length in characters. About 20,000 elements have this length, and cost the monitor 14 MB.
 */
const RENEWAL_LENGTH = 2 ** 21;
const RETRY_BASE_MILLIS = 1000;
const RETRY_MAX_MILLIS = 60_000;

interface Batch {
  sections: Map<SectionName, Section>;
  results: Map<SectionName, PromiseWithResolvers<Rejections>>;
}

class Owner implements NftTable {
  readonly #options: OpenOptions;
  /** The last version of each section that the kernel has accepted. */
  readonly #applied = new Map<SectionName, Section>();
  readonly #unknown = new Set<SectionName>();
  readonly #rejected = new RejectedParts();
  #opened = false;
  #monitor: Monitor | undefined;
  /** The length of the commands since the start of the monitor, in characters. */
  #writtenLength = 0;
  #next: Batch | undefined;
  #running = false;
  #isSuspect = false;
  #failures = 0;

  readonly name: string;

  constructor(options: OpenOptions) {
    this.#options = options;
    this.name = options.name;
    if (options.watch === undefined) return;
    this.#monitor = followDeletions({
      ...options,
      ...options.watch,
      deleted: () => this.#suspect(),
    });
  }

  set(section: SectionName, parts: Section): Promise<Rejections> {
    this.#next ??= { sections: new Map(), results: new Map() };
    const { sections, results } = this.#next;
    sections.set(section, parts);
    const result = results.get(section) ?? Promise.withResolvers<Rejections>();
    results.set(section, result);
    if (!this.#running) void this.#run();
    return result.promise;
  }

  #suspect(): void {
    this.#isSuspect = true;
    if (!this.#running) void this.#run();
  }

  async #run(): Promise<void> {
    this.#running = true;
    // Sections that are set in the same turn of the event loop are part of one transaction.
    await Promise.resolve();
    while (this.#next !== undefined || this.#isSuspect) {
      if (this.#isSuspect) await this.#restore();
      const batch = this.#take();
      if (batch === undefined) continue;
      const failed = await this.#apply(batch.sections);
      for (const [section, result] of batch.results) {
        if (failed.has(section)) result.reject(failed.get(section));
        else result.resolve(this.#rejected.of(section));
      }
    }
    this.#running = false;
  }

  #take(): Batch | undefined {
    const batch = this.#next;
    this.#next = undefined;
    return batch;
  }

  /** Resolves with the errors of the sections that have not been changed. */
  async #apply(sections: ReadonlyMap<SectionName, Section>): Promise<Map<SectionName, unknown>> {
    const failed = new Map<SectionName, unknown>();
    const wanted = new Map([...sections].map(([section, parts]) => [section, this.#rejected.without(section, parts)]));
    try {
      await this.#transact(wanted);
    } catch (error) {
      if (error instanceof NftHangsError) return this.#failAll(sections, error);
      // nft rejects something in one of the sections, or another program has changed the table.
      await this.#restore();
      for (const [section, parts] of wanted) {
        await this.#applyAlone(section, parts).catch((error: unknown) => {
          this.#unknown.add(section);
          failed.set(section, error);
        });
      }
    }
    return failed;
  }

  async #applyAlone(section: SectionName, parts: Section): Promise<void> {
    try {
      await this.#replace(section, parts);
    } catch (error) {
      const rejected = error instanceof CommandError ? await this.#findRejected(section, parts, error) : undefined;
      if (rejected === undefined) throw error;
      this.#rejected.add(section, parts, rejected);
      await this.#replace(section, withFallbacks(parts, new Set(rejected.keys())));
    }
  }

  /** Resolves with the parts that nft(8) rejects; with undefined if it rejects the section even with the fallbacks of all parts. */
  async #findRejected(section: SectionName, parts: Section, error: Error): Promise<Rejections | undefined> {
    const applied = this.#unknown.has(section) ? undefined : this.#applied.get(section);
    const found = applied && (await this.#search(section, parts, applied, error));
    if (found !== undefined) return found;
    // The first search may have failed because another program has changed the rules that the kernel had accepted.
    this.#unknown.add(section);
    return this.#search(section, parts, undefined, error);
  }

  async #search(
    section: SectionName,
    parts: Section,
    applied: Section | undefined,
    error: Error,
  ): Promise<Rejections | undefined> {
    const { name } = this.#options;
    const existing = applied === undefined ? await this.#open() : [];
    const commands = (desired: Section): Iterator<string, unknown> =>
      applied === undefined
        ? replaceSection(name, section, desired, { existing, keepDeclarations: false })
        : changeSection(name, applied, desired);
    const attempts = findRejected(candidates(parts, applied ?? new Map()), error);
    let attempt = attempts.next();
    while (!attempt.done)
      attempt = attempts.next(await check(this.#options, commands(withFallbacks(parts, attempt.value))));
    return attempt.value;
  }

  #failAll(sections: ReadonlyMap<SectionName, Section>, error: Error): Map<SectionName, unknown> {
    for (const section of sections.keys()) this.#unknown.add(section);
    return new Map([...sections.keys()].map((section) => [section, error]));
  }

  /** Restores the sections that have lost rules. With the option `watch`, a restoration that fails is repeated later. */
  async #restore(): Promise<void> {
    const { signal, watch } = this.#options;
    this.#isSuspect = false;
    if (this.#applied.size === 0 || signal.aborted) return;
    try {
      const lost = await this.#lostSections();
      for (const section of lost.keys()) this.#unknown.add(section);
      if (lost.size > 0) {
        await this.#transact(lost).catch(async () => {
          for (const [section, parts] of lost) await this.#replace(section, parts);
        });
        watch?.log.warn('restored the rules that another program has removed', { sections: [...lost.keys()] });
      }
      this.#failures = 0;
    } catch (error) {
      if (signal.aborted || watch === undefined) return;
      watch.log.error('cannot restore the rules that another program has removed', { error });
      const waitMillis = backOffMillis(++this.#failures, RETRY_BASE_MILLIS, RETRY_MAX_MILLIS);
      void pause(watch.timers, waitMillis, signal).then(() => this.#suspect());
    }
  }

  async #transact(sections: ReadonlyMap<SectionName, Section>): Promise<void> {
    const { name } = this.#options;
    const replaced: [SectionName, Section][] = [];
    const input: string[] = [];
    for (const [section, parts] of sections) {
      const applied = this.#unknown.has(section) ? undefined : this.#applied.get(section);
      const isChanged = applied !== undefined && (await collectInTurns(changeSection(name, applied, parts), input));
      if (!isChanged) replaced.push([section, parts]);
    }
    if (replaced.length > 0) {
      const options = { existing: await this.#open(), keepDeclarations: true };
      for (const [section, parts] of replaced)
        await collectInTurns(replaceSection(name, section, parts, options), input);
    }
    if (input.length > 0) await this.#commit(input);
    for (const [section, parts] of sections) this.#accepted(section, parts);
  }

  #accepted(section: SectionName, parts: Section): void {
    this.#applied.set(section, parts);
    this.#unknown.delete(section);
  }

  /**
   * Replaces the section in the table. First keeps the declarations of existing chains and sets, so that dynamic sets keep their elements;
   * if that fails, creates all chains and sets again.
   */
  async #replace(section: SectionName, parts: Section): Promise<void> {
    const existing = await this.#open();
    const replace = async (keepDeclarations: boolean): Promise<void> => {
      const input: string[] = [];
      await collectInTurns(replaceSection(this.#options.name, section, parts, { existing, keepDeclarations }), input);
      await this.#commit(input);
    };
    await replace(true).catch(() => replace(false));
    this.#accepted(section, parts);
  }

  async #lostSections(): Promise<Map<SectionName, Section>> {
    const existing = new Map((await this.#open()).map((object) => [object.name, object]));
    return new Map([...this.#applied].filter(([, section]) => !isComplete(section, existing)));
  }

  /** Creates the table if it does not exist, and resolves with the chains, sets and maps that it contains. */
  async #open(): Promise<ListedObject[]> {
    const { name } = this.#options;
    await this.#commit(`add table inet ${name}\n${this.#opened ? '' : removal('ip', name)}`);
    const found = await listObjects(this.#options);
    const obsolete = found.filter(isObsolete);
    if (obsolete.length > 0) {
      const commands = ['flush', 'delete'].flatMap((verb) =>
        obsolete.map((object) => `${verb} ${object.kind} inet ${name} ${object.name}\n`),
      );
      await this.#commit(commands);
    }
    this.#opened = true;
    return found.filter((object) => !isObsolete(object));
  }

  async #commit(input: string | readonly string[]): Promise<void> {
    await nft(this.#options, ['-f', '-'], input);
    for (const piece of [input].flat()) this.#writtenLength += piece.length;
    if (this.#writtenLength < (this.#options.watch?.renewalLength ?? RENEWAL_LENGTH)) return;
    this.#writtenLength = 0;
    this.#monitor?.renew();
  }
}

/** An object that belongs to no section was created by another version of lifepod. */
const isObsolete = ({ name }: NamedObject): boolean => !SECTIONS.some((section) => name.startsWith(`${section}/`));
