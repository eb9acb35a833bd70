import { UserError } from '../../platform/files.ts';
import { withLimit } from '../../platform/on-abort.ts';
import { CommandError, runCommand } from '../../platform/processes.ts';
import { workInTurns } from '../../platform/work-in-turns.ts';
import { collectInTurns } from './collect-in-turns.ts';
import type { Section } from './section.ts';
import type { NamedObject } from './transaction.ts';

export interface TableOptions {
  name: string;
  signal: AbortSignal;
  /** The network namespace of ip-netns(8); by default, the namespace of the process. */
  namespace?: string;
  /** By default, LIMIT_MILLIS. */
  limitMillis?: number;
}

/**
 * Many times longer than the largest transaction takes: a transaction that is killed before the kernel has accepted it would be repeated
 * forever.
 */
const LIMIT_MILLIS = 180_000;

/** nft(8) did not end in time and was killed. Whether its transaction has taken effect is unknown. */
export class NftHangsError extends UserError {
  constructor(limitMillis: number) {
    super(
      `nft did not end within ${limitMillis / 1000} s and was killed: find out with 'nft list tables' whether nft hangs ` +
        'for all programs, and end other programs that change the rules of the machine and hang, such as nft or iptables',
    );
  }
}

export const nftCommand = ({ namespace }: TableOptions, args: string[]): string[] => [
  ...(namespace === undefined ? [] : ['ip', 'netns', 'exec', namespace]),
  'nft',
  ...args,
];

/** A limit in characters: nft(8) repeats the line of the input, which may be as long as all elements of a set. */
const MAX_ERROR_LENGTH = 2000;

/** Resolves with the output. Rejects with a CommandError if nft(8) fails, and with an NftHangsError if nft(8) does not end. */
export async function nft(options: TableOptions, args: string[], input?: string | readonly string[]): Promise<string> {
  const { signal, limitMillis = LIMIT_MILLIS } = options;
  const [command = '', ...rest] = nftCommand(options, args);
  const { code, stdout, stderr } = await withLimit(signal, limitMillis, new NftHangsError(limitMillis), (limited) =>
    runCommand(command, rest, { signal: limited, ...(input === undefined ? {} : { input }) }),
  );
  if (code === 0) return stdout;
  throw new CommandError(
    `nft ended with exit code ${code}: ${(stderr.trim() || 'no output').slice(0, MAX_ERROR_LENGTH)}`,
  );
}

/**
 * Checks the commands of changeSection() or replaceSection() without executing them. Resolves with the error of nft(8), or undefined if the
 * commands are accepted. Rejects with an NftHangsError if nft(8) does not end.
 */
export async function check(options: TableOptions, commands: Iterator<string, unknown>): Promise<Error | undefined> {
  const input: string[] = [];
  if ((await collectInTurns(commands, input)) === false) return new Error('a chain or set has another declaration');
  try {
    await nft(options, ['--check', '-f', '-'], input);
    return undefined;
  } catch (error) {
    if (error instanceof CommandError) return error;
    throw error;
  }
}

export interface ListedObject extends NamedObject {
  /** The number of rules; 0 for sets and maps. */
  rules: number;
}

/** Resolves with the chains, sets and maps of the table. Rejects if nft(8) fails, for example because the table does not exist. */
export async function listObjects(options: TableOptions): Promise<ListedObject[]> {
  // --terse omits the elements of the sets, of which there may be very many.
  return parseObjects(await nft(options, ['--terse', 'list', 'table', 'inet', options.name]));
}

export async function listOtherEngines(options: TableOptions): Promise<string[]> {
  const listed = await nft(options, ['list', 'tables', 'inet']);
  return [...listed.matchAll(/^table inet (lifepod-\S+)$/gm)]
    .map(([, name = '']) => name)
    .filter((name) => name !== options.name);
}

/** Whether the table has all chains and sets of the section. Compares the numbers of rules, but not the rules. */
export const isComplete = (section: Section, existing: ReadonlyMap<string, ListedObject>): boolean =>
  [...section.values()].every(
    ({ chains = [], sets = [] }) =>
      chains.every(({ name, rules }) => existing.get(name)?.rules === rules.length) &&
      sets.every(({ name }) => existing.has(name)),
  );

const OBJECT = /^\t(chain|set|map) (\S+) \{/;
/** Matches the first line of a rule, but neither the line that attaches a chain to a hook nor a further line of a rule. */
const RULE = /^\t\t(?!\t|type )\S/;
const LINES_PER_STEP = 1000;

/** Resolves with the chains, sets and maps in the output of `nft --terse list table`. Lets other work run while it parses. */
export async function parseObjects(listed: string): Promise<ListedObject[]> {
  const objects: ListedObject[] = [];
  const betweenSteps = workInTurns();
  for (const [index, line] of listed.split('\n').entries()) {
    if (index % LINES_PER_STEP === 0) await betweenSteps();
    const [, kind, name] = OBJECT.exec(line) ?? [];
    const object = objects.at(-1);
    if (kind !== undefined && name !== undefined) objects.push({ kind: kind as ListedObject['kind'], name, rules: 0 });
    else if (object?.kind === 'chain' && RULE.test(line)) object.rules++;
  }
  return objects;
}
