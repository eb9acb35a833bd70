/** Runs nft(8), and reads the names of what a table contains. */
import { runCommandOk } from '../../platform/processes.ts';
import { workInTurns } from '../../platform/work-in-turns.ts';
import type { NamedObject } from './transaction.ts';

export interface TableOptions {
  name: string;
  /** Ends the transactions. */
  signal: AbortSignal;
  /** Runs nft(8) in this network namespace of ip-netns(8); by default, in that of the process. */
  namespace?: string;
}

/** Returns the words of a command that runs nft(8) in the namespace. */
export const nftCommand = ({ namespace }: TableOptions, args: string[]): string[] => [
  ...(namespace === undefined ? [] : ['ip', 'netns', 'exec', namespace]),
  'nft',
  ...args,
];

/** Resolves with the output. */
export function nft(options: TableOptions, args: string[], input?: string | readonly string[]): Promise<string> {
  const [command = '', ...rest] = nftCommand(options, args);
  return runCommandOk(command, rest, { signal: options.signal, ...(input === undefined ? {} : { input }) });
}

/** A chain, set or map of a table in the kernel. */
export interface ListedObject extends NamedObject {
  /** The number of rules of a chain. */
  rules: number;
}

/** Resolves with the chains, sets and maps of the table. Rejects if the table does not exist. */
export async function listObjects(options: TableOptions): Promise<ListedObject[]> {
  // The option --terse leaves out the elements of the sets.
  return parseObjects(await nft(options, ['--terse', 'list', 'table', 'inet', options.name]));
}

const OBJECT = /^\t(chain|set|map) (\S+) \{/;
/** A rule, unlike the line that attaches a chain to a hook, or a further line of a rule. */
const RULE = /^\t\t(?!\t|type )\S/;
const LINES_PER_STEP = 1000;

/** Parses the output of `nft --terse list table`, in turns with other work. */
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
