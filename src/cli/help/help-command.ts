/** The command `help` of the program and of each group of commands. Unlike commander's, it is an error for a command that does not exist. */
import type { Command } from 'commander';
import { UserError } from '../../platform/files.ts';
import { fullName } from './help-format.ts';

/** Adds the commands. Must be called after all commands have been added. */
export function addHelp(program: Command): void {
  for (const group of [program, ...program.commands.filter(({ commands }) => commands.length > 0)]) {
    group.helpCommand(false);
    group
      .command('help')
      .argument('[command...]')
      .description('show the help of a command')
      .action((words: string[]) => commandNamed(group, words).outputHelp());
  }
}

/** Returns the command with the words, such as `image load`. Throws a UserError if there is none. */
function commandNamed(group: Command, words: readonly string[]): Command {
  let found = group;
  for (const word of words) {
    const next = found.commands.find((each) => each.name() === word || each.aliases().includes(word));
    if (next === undefined) throw new UserError(`unknown command '${word}'; see '${fullName(found)} --help'`);
    found = next;
  }
  return found;
}
