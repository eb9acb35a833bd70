/**
 * The owner of the instance's nftables table: the only component that changes it. Other components declare sections of it.
 *
 * Boundary: section.ts is what a section declares; transaction.ts writes the commands; monitor.ts reports what other programs delete. This
 * file runs nft(8), one process for each transaction: it costs about as much as a transaction over a permanent `nft -i`, whose output does
 * not show where the result of a command ends.
 * Invariants:
 *  1. A change of the table is one transaction: packets are matched against the old or the new rules, never against parts of both.
 *  2. The kernel keeps the table when the engine ends. A section is replaced when it is first set, and whenever its state in the kernel is
 *     unknown; the others remain as they are. Replacing it changes no connection that the kernel already tracks.
 *  3. Sections that are set during a transaction are part of the next one. Thus a burst of changes needs few transactions, without timers.
 *  4. A section that the kernel rejects keeps its last rules and does not keep other sections from changing.
 *  5. Sections are restored when another program has deleted some of their rules. Only a difference between the table and the sections
 *     leads to a transaction, so that the owner's own transactions lead to none.
 *  6. A transaction that does not end fails, and leaves the state of its sections unknown, as when another program has changed them.
 *  7. However large a section is, other work runs while its commands are written.
 */
import { backOffMillis } from '../../client/back-off.ts';
import { pause } from '../../platform/pause.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import { workInTurns } from '../../platform/work-in-turns.ts';
import { followDeletions, type Monitor } from './monitor.ts';
import { type ListedObject, listObjects, NftHangsError, nft, type TableOptions } from './nft.ts';
import { type Part, SECTIONS, type Section, type SectionName } from './section.ts';
import { changeSection, type NamedObject, replaceSection } from './transaction.ts';

export interface NftTable {
  readonly name: string;
  /**
   * Makes the section what the parts declare. Resolves when the kernel has it, or a later version that has been set meanwhile. Rejects with
   * the error of nft(8) if the kernel rejects the section, with an NftHangsError if nft(8) does not end, and with the reason of the signal if
   * the signal aborts.
   */
  set(section: SectionName, parts: Section): Promise<void>;
}

export interface OpenOptions extends TableOptions {
  /**
   * Restores the sections as soon as another program deletes rules of the table. Absent: at the next change. `renewalLength`: the length of
   * the commands after which the monitor is renewed, by default RENEWAL_LENGTH.
   */
  watch?: { timers: Timers; log: Log; renewalLength?: number };
}

/** Returns the owner of the table `inet NAME`. Nothing is changed before a section is set. */
export function openTable(options: OpenOptions): NftTable {
  return new Owner(options);
}

/** Removes the table. Does nothing if it does not exist. Rejects if nft(8) fails. */
export async function deleteTable(options: TableOptions): Promise<void> {
  await nft(options, ['-f', '-'], `${removal('inet', options.name)}${removal('ip', options.name)}`);
}

/** Older versions of lifepod had a table of the family `ip`. */
const removal = (family: 'ip' | 'inet', name: string): string =>
  `add table ${family} ${name}\ndelete table ${family} ${name}\n`;

/** Pieces of input of this length are written at once. */
const PIECE_LENGTH = 65_536;
/** These are about 20,000 elements, which cost the monitor 14 MB. */
const RENEWAL_LENGTH = 2 ** 21;
const RETRY_BASE_MILLIS = 1000;
const RETRY_MAX_MILLIS = 60_000;

interface Batch {
  sections: Map<SectionName, Section>;
  results: Map<SectionName, PromiseWithResolvers<void>>;
}

class Owner implements NftTable {
  readonly #options: OpenOptions;
  /** The last version of each section that the kernel has accepted. */
  readonly #applied = new Map<SectionName, Section>();
  /** Sections whose state in the kernel is unknown. */
  readonly #unknown = new Set<SectionName>();
  #opened = false;
  #monitor: Monitor | undefined;
  /** The length of the commands since the monitor was started. */
  #writtenLength = 0;
  /** The sections of the next transaction; undefined if there are none. */
  #next: Batch | undefined;
  #running = false;
  /** Whether another program may have deleted rules. */
  #isSuspect = false;
  /** The number of consecutive failures to restore sections. */
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

  set(section: SectionName, parts: Section): Promise<void> {
    this.#next ??= { sections: new Map(), results: new Map() };
    const { sections, results } = this.#next;
    sections.set(section, parts);
    const result = results.get(section) ?? Promise.withResolvers<void>();
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
      const rejected = await this.#apply(batch.sections);
      for (const [section, result] of batch.results) {
        if (rejected.has(section)) result.reject(rejected.get(section));
        else result.resolve();
      }
    }
    this.#running = false;
  }

  #take(): Batch | undefined {
    const batch = this.#next;
    this.#next = undefined;
    return batch;
  }

  /** Resolves with the errors of the sections that the kernel has rejected. */
  async #apply(sections: ReadonlyMap<SectionName, Section>): Promise<Map<SectionName, unknown>> {
    const rejected = new Map<SectionName, unknown>();
    try {
      await this.#transact(sections);
    } catch (error) {
      if (error instanceof NftHangsError) return this.#failAll(sections, error);
      // One of the sections is invalid, or another program has changed the table.
      await this.#restore();
      for (const [section, parts] of sections) {
        await this.#replace(section, parts).catch((error: unknown) => rejected.set(section, error));
      }
    }
    return rejected;
  }

  #failAll(sections: ReadonlyMap<SectionName, Section>, error: Error): Map<SectionName, unknown> {
    for (const section of sections.keys()) this.#unknown.add(section);
    return new Map([...sections.keys()].map((section) => [section, error]));
  }

  /** Restores the sections of which chains, sets, maps or rules are missing in the table. Tries again later if that fails. */
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
      const isChanged = applied !== undefined && (await collect(changeSection(name, applied, parts), input));
      if (!isChanged) replaced.push([section, parts]);
    }
    if (replaced.length > 0) {
      const options = { existing: await this.#open(), keepDeclarations: true };
      for (const [section, parts] of replaced) await collect(replaceSection(name, section, parts, options), input);
    }
    if (input.length > 0) await this.#commit(input);
    for (const [section, parts] of sections) this.#accepted(section, parts);
  }

  #accepted(section: SectionName, parts: Section): void {
    this.#applied.set(section, parts);
    this.#unknown.delete(section);
  }

  /** Replaces a section on its own, first with the dynamic sets that exist, then without them. */
  async #replace(section: SectionName, parts: Section): Promise<void> {
    this.#unknown.add(section);
    const existing = await this.#open();
    const replace = async (keepDeclarations: boolean): Promise<void> => {
      const input: string[] = [];
      await collect(replaceSection(this.#options.name, section, parts, { existing, keepDeclarations }), input);
      await this.#commit(input);
    };
    await replace(true).catch(() => replace(false));
    this.#accepted(section, parts);
  }

  /** Resolves with the sections of which chains, sets, maps or rules are missing in the table. */
  async #lostSections(): Promise<Map<SectionName, Section>> {
    const existing = new Map((await this.#open()).map((object) => [object.name, object]));
    const hasAll = ({ chains = [], sets = [] }: Part): boolean =>
      chains.every(({ name, rules }) => existing.get(name)?.rules === rules.length) &&
      sets.every(({ name }) => existing.has(name));
    return new Map([...this.#applied].filter(([, section]) => ![...section.values()].every(hasAll)));
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

/** Returns whether an object belongs to no section, because another version of lifepod has created it. */
const isObsolete = ({ name }: NamedObject): boolean => !SECTIONS.some((section) => name.startsWith(`${section}/`));

/** Runs the steps in turns with other work, adds the text that they yield to `pieces`, and resolves with their result. */
async function collect<T>(steps: Iterator<string, T>, pieces: string[]): Promise<T> {
  const betweenSteps = workInTurns();
  let text = '';
  for (;;) {
    const { done, value } = steps.next();
    if (!done) text += value;
    if (text !== '' && (done || text.length >= PIECE_LENGTH)) {
      pieces.push(text);
      text = '';
    }
    if (done) return value;
    await betweenSteps();
  }
}
