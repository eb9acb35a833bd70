/**
 * Replaces the command `help` of commander, which exits with 0 for a command that does not exist, and does not know the commands of a
 * group.
 */
import type { Command } from 'commander';
import { UserError } from '../../platform/files.ts';
import { fullName } from './help-format.ts';

/**
 * Returns the command whose help the words ask for, such as `help image load` or `image help load`; undefined if they do not call `help`,
 * or contain an option. Throws a UserError if the command does not exist.
 */
export function helpFor(program: Command, words: readonly string[]): Command | undefined {
  if (words.some((word) => word.startsWith('-'))) return undefined;
  const [group, rest] =
    words[0] === 'help' ? [program, words.slice(1)] : [childOf(program, words[0] ?? ''), words.slice(2)];
  if (words[0] !== 'help' && !(words[1] === 'help' && group !== undefined && group.commands.length > 0))
    return undefined;
  let found = group ?? program;
  for (const word of rest) {
    // `help help` asks how to use help itself.
    if (word === 'help' && found.commands.length > 0) continue;
    const next = childOf(found, word);
    if (next === undefined) throw new UserError(unknown(program, found, word));
    found = next;
  }
  return found;
}

function unknown(program: Command, found: Command, word: string): string {
  const other = found === program ? undefined : (childOf(found.parent ?? program, word) ?? childOf(program, word));
  return other === undefined
    ? `unknown command '${word}'; see '${fullName(found)} --help'`
    : `help is about one command at a time: see '${fullName(found)} --help' and '${fullName(other)} --help'`;
}

const childOf = ({ commands }: Command, word: string): Command | undefined =>
  commands.find((each) => each.name() === word || each.aliases().includes(word));
