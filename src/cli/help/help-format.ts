/**
 * Lays out the help of all commands: at most 100 columns, and descriptions that begin at the same column; the description of a long
 * term begins on the next line. commander's own layout indents all descriptions by the longest term, which leaves them a few columns.
 */
import { type Command, Help, type HelpConfiguration } from 'commander';

/** A narrower terminal gets shorter lines. */
export const MOST_COLUMNS = 100;
/** Descriptions of arguments, options and commands begin at most this far to the right. */
const MOST_TERM_COLUMNS = 30;
const INDENT = '  ';
/** A description gets at least this many columns, even if its lines are then longer than a very narrow terminal is wide. */
const LEAST_TEXT_COLUMNS = 20;

/** Returns the commands of the program, itself included. Parents precede their subcommands. */
export const allCommands = (program: Command): Command[] => [program, ...program.commands.flatMap(allCommands)];

export const fullName = (command: Command): string =>
  command.parent === null ? command.name() : `${fullName(command.parent)} ${command.name()}`;

/** Must be called after all commands have been added. */
export function layOutHelp(program: Command): void {
  for (const command of allCommands(program)) {
    command.configureHelp(LAYOUT).configureOutput({
      getOutHelpWidth: () => columnsOf(process.stdout),
      getErrHelpWidth: () => columnsOf(process.stderr),
    });
  }
}

const columnsOf = ({ isTTY, columns }: NodeJS.WriteStream): number =>
  isTTY ? Math.min(columns, MOST_COLUMNS) : MOST_COLUMNS;

const LAYOUT: HelpConfiguration & Partial<Pick<Help, 'boxWrap' | 'formatItem' | 'optionDescription' | 'padWidth'>> = {
  boxWrap: wrap,
  // commander adds the value that a flag without a value means. This text is omitted, because the value is `true` for every option.
  optionDescription: (option) => Help.prototype.optionDescription(option).replace(/ \(preset: "true"\)$/, ''),
  padWidth: (command, helper) =>
    Math.min(MOST_TERM_COLUMNS, Help.prototype.padWidth.call(helper, command, helper as Help)),
  formatItem(term, termWidth, description, helper) {
    if (description === '') return INDENT + term;
    const before = ' '.repeat(INDENT.length + termWidth + INDENT.length);
    const lines = wrap(description, (helper.helpWidth ?? MOST_COLUMNS) - before.length);
    const text = lines.replaceAll('\n', `\n${before}`);
    const isLong = helper.displayWidth(term) > termWidth;
    return INDENT + (isLong ? `${term}\n${before}` : term.padEnd(termWidth + INDENT.length)) + text;
  },
};

function wrap(text: string, columns: number): string {
  const width = Math.max(columns, LEAST_TEXT_COLUMNS);
  return text
    .split('\n')
    .map((paragraph) => {
      const parts = paragraph.split(' ').flatMap((word, index) => {
        const [first = '', ...more] = word.length > width ? word.split(/(?<=,)/) : [word];
        return [(index === 0 ? '' : ' ') + first, ...more];
      });
      const lines = [''];
      for (const part of parts) {
        const line = lines.at(-1) ?? '';
        if (line === '' || line.length + part.length <= width) lines.splice(-1, 1, line + part);
        else lines.push(part.trimStart());
      }
      return lines.join('\n');
    })
    .join('\n');
}
