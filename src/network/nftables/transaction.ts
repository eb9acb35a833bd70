/**
 * Writes the input of nft(8) that changes a table from one version of a section to another, in one transaction.
 *
 * The functions yield the input in pieces, which may be empty, so that the caller can let other work run: a section may have very many
 * elements.
 */
import type { Chain, NftSet, Part, Section, SectionName } from './section.ts';

/** The maximum number of elements, chains or sets between two pieces. */
const STEP = 1000;

export interface NamedObject {
  kind: 'chain' | 'set' | 'map';
  name: string;
}

interface Declared {
  chains: Map<string, Chain>;
  sets: Map<string, NftSet>;
  elements: Map<string, Map<string, string>>;
}

function* declared(parts: readonly Part[]): Generator<string, Declared> {
  const all: Declared = { chains: new Map(), sets: new Map(), elements: new Map() };
  let count = 0;
  for (const part of parts) {
    if (++count % STEP === 0) yield '';
    for (const chain of part.chains ?? []) all.chains.set(chain.name, chain);
    for (const set of part.sets ?? []) all.sets.set(set.name, set);
    for (const { set, values } of part.elements ?? []) {
      const known = all.elements.get(set) ?? new Map<string, string>();
      all.elements.set(set, known);
      for (const [key, value] of values) {
        known.set(key, value);
        if (++count % STEP === 0) yield '';
      }
    }
  }
  return all;
}

function partsMissingIn(section: Section, other: Section): Part[] {
  const missing: Part[] = [];
  for (const [name, part] of section) if (other.get(name) !== part) missing.push(part);
  return missing;
}

/**
 * Yields the commands that change the section from `applied` to `desired`. Returns false, without a command, if the section must be
 * replaced, because a chain or a set keeps its name but not its hook or type. The kernel accepts the order of the commands: objects are
 * added before and deleted after the references to them.
 */
export function* changeSection(table: string, applied: Section, desired: Section): Generator<string, boolean> {
  const before = yield* declared(partsMissingIn(applied, desired));
  const after = yield* declared(partsMissingIn(desired, applied));
  if (redeclares(before, after)) return false;
  const chains = [...after.chains.values()].filter(({ name, rules }) => {
    const old = before.chains.get(name)?.rules ?? [];
    return rules.length !== old.length || rules.some((rule, index) => rule !== old[index]);
  });
  const deletedChains = [...before.chains.keys()].filter((name) => !after.chains.has(name));
  const flushed = [...chains.map(({ name }) => name).filter((name) => before.chains.has(name)), ...deletedChains];
  yield* inPieces(
    [...after.sets.values()].filter(({ name }) => !before.sets.has(name)),
    (set) => addSet(table, set),
  );
  yield* inPieces(
    [...after.chains.values()].filter(({ name }) => !before.chains.has(name)),
    (chain) => addChain(table, chain),
  );
  yield* inPieces(flushed, (name) => `flush chain inet ${table} ${name}\n`);
  yield* changeElements(table, before, after);
  yield* inPieces(chains, (chain) => addRules(table, chain));
  yield* inPieces(deletedChains, (name) => `delete chain inet ${table} ${name}\n`);
  const deletedSets = [...before.sets.values()].filter(({ name }) => !after.sets.has(name));
  yield* inPieces(deletedSets, ({ kind, name }) => `delete ${kind} inet ${table} ${name}\n`);
  return true;
}

const redeclares = (before: Declared, after: Declared): boolean =>
  [...after.chains.values()].some(({ name, base }) => {
    const old = before.chains.get(name);
    return old !== undefined && old.base !== base;
  }) ||
  [...after.sets.values()].some((set) => {
    const old = before.sets.get(set.name);
    return old !== undefined && (old.kind !== set.kind || old.type !== set.type || old.options !== set.options);
  });

/** A changed element is deleted and added again, because nft(8) has no command that replaces its value. */
function* changeElements(table: string, before: Declared, after: Declared): Generator<string> {
  for (const [set, values] of before.elements) {
    const deleted = before.sets.has(set) && !after.sets.has(set);
    const kept = after.elements.get(set);
    // All elements of a deleted set are deleted first: chains are deleted before maps, and a map must not refer to a deleted chain.
    yield* elementCommand(`delete element inet ${table} ${set}`, values, ([key, value]) =>
      deleted || kept?.get(key) !== value ? key : undefined,
    );
  }
  for (const [set, values] of after.elements) {
    const old = before.elements.get(set);
    yield* elementCommand(`add element inet ${table} ${set}`, values, (element) =>
      old?.get(element[0]) === element[1] ? undefined : addition(element),
    );
  }
}

export interface Replacement {
  existing: readonly NamedObject[];
  /**
   * Whether existing objects keep their declarations, so that dynamic sets keep the elements that rules have added. The kernel refuses this
   * if a declaration has changed.
   */
  keepDeclarations: boolean;
}

export function* replaceSection(
  table: string,
  section: SectionName,
  desired: Section,
  { existing, keepDeclarations }: Replacement,
): Generator<string, void> {
  const { chains, sets, elements } = yield* declared([...desired.values()]);
  const own = existing.filter(({ name }) => name.startsWith(`${section}/`));
  const kept = ({ kind, name }: NamedObject): boolean =>
    keepDeclarations && (kind === 'chain' ? chains.has(name) : sets.get(name)?.kind === kind);
  const flushed = [
    ...own.filter(({ kind }) => kind === 'chain'),
    ...own.filter((object) => object.kind !== 'chain' && !(kept(object) && sets.get(object.name)?.dynamic === true)),
  ];
  yield* inPieces(flushed, ({ kind, name }) => `flush ${kind} inet ${table} ${name}\n`);
  const deleted = own.filter((object) => !kept(object));
  yield* inPieces(deleted, ({ kind, name }) => `delete ${kind} inet ${table} ${name}\n`);
  yield* inPieces(sets.values(), (set) => addSet(table, set));
  yield* inPieces(chains.values(), (chain) => addChain(table, chain));
  for (const [set, values] of elements) yield* elementCommand(`add element inet ${table} ${set}`, values, addition);
  yield* inPieces(chains.values(), (chain) => addRules(table, chain));
}

function* inPieces<T>(objects: Iterable<T>, textOf: (object: T) => string): Generator<string> {
  let count = 0;
  let text = '';
  for (const object of objects) {
    text += textOf(object);
    if (++count % STEP > 0) continue;
    yield text;
    text = '';
  }
  if (text !== '') yield text;
}

const addSet = (table: string, { kind, name, type, options }: NftSet): string =>
  `add ${kind} inet ${table} ${name} { type ${type}; ${options ?? ''} }\n`;

const addChain = (table: string, { name, base }: Chain): string =>
  `add chain inet ${table} ${name}${base === undefined ? '' : ` { ${base} }`}\n`;

const addRules = (table: string, { name, rules }: Chain): string =>
  rules.map((rule) => `add rule inet ${table} ${name} ${rule}\n`).join('');

const addition = ([key, value]: [string, string]): string => (value === '' ? key : `${key} : ${value}`);

function* elementCommand(
  command: string,
  values: ReadonlyMap<string, string>,
  textOf: (element: [string, string]) => string | undefined,
): Generator<string> {
  let count = 0;
  let isEmpty = true;
  let text = '';
  for (const element of values) {
    const added = textOf(element);
    if (added !== undefined) text += `${isEmpty ? `${command} { ` : ', '}${added}`;
    isEmpty &&= added === undefined;
    if (++count % STEP > 0) continue;
    yield text;
    text = '';
  }
  if (!isEmpty) yield `${text} }\n`;
}
