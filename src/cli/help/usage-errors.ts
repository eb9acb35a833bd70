/** Rewrites the errors that commander reports about the arguments of a command: as one sentence, in the form of lifepod's other errors. */
import { Command, type Option } from 'commander';
import { shellQuoted } from '../../platform/programs/typed-program.ts';
import { isPodType, workloadKind } from '../workloads/type-names.ts';
import { allCommands, fullName } from './help-format.ts';

/** Must be called after all commands have been added. */
export function explainUsageErrors(program: Command): void {
  for (const command of allCommands(program)) {
    command.configureOutput({
      outputError: (text, write) => write(`lifepod: ${usageError(text, fullName(command), command)}\n`),
    });
  }
}

/**
 * Returns one sentence about a wrong call of a command. `text` is the message of commander, `name` the command as the user types it, and
 * `words` what the user has typed after the name of the program.
 */
export function usageError(
  text: string,
  name: string,
  { commands: children, options, parent }: Pick<Command, 'commands' | 'options'> & Partial<Command> = new Command(),
  words: readonly string[] = process.argv.slice(2),
): string {
  const message = text.trim().replace(/^error: /, '');
  const shown =
    ofKubectl(message, name, words) ??
    misspelled(message, name, children) ??
    abbreviated(message, options) ??
    ofOther(message, name, parent) ??
    shortened(message, name);
  return `${shown}${runHint(message, name)}${placeHint(message, name, children)}; see '${name} --help'`;
}

/** The commands that users of other programs may mean. */
const MEANT: ReadonlyMap<string, string> = new Map([
  ['stop', 'down'],
  ['halt', 'down'],
  ['start', 'up'],
]);

/** The commands of kubectl v1.33 that lifepod does not have. */
const OF_KUBECTL: ReadonlySet<string> = new Set(
  (
    'annotate api-resources api-versions apply attach auth autoscale certificate cluster-info config cordon cp create debug delete diff ' +
    'drain edit events exec explain expose get kustomize label patch port-forward proxy replace rollout scale set taint top uncordon wait'
  ).split(' '),
);

function ofKubectl(message: string, name: string, words: readonly string[]): string | undefined {
  const [problem, given = ''] = /^unknown command '([^'\n]*)'/.exec(message) ?? [];
  const isMeant = OF_KUBECTL.has(given) && (name === 'lifepod' || name === 'kubectl lifepod');
  return isMeant ? `${problem} (did you mean 'kubectl ${words.map(shellQuoted).join(' ')}'?)` : undefined;
}

/**
 * Returns the message about an unknown command with the commands that the user may mean; undefined if there are none. commander suggests
 * only commands of about the same length, so an abbreviation could lead to another command.
 */
function misspelled(message: string, name: string, children: readonly Command[]): string | undefined {
  const [, problem, given = '', list] =
    /^(unknown command '(.*)')(?:\s*\n\(Did you mean (?:one of )?(.*)\?\))?$/s.exec(message) ?? [];
  const longer = given === '' ? [] : children.map((child) => child.name()).filter((each) => each.startsWith(given));
  const other = children.map((child) => child.name()).filter((each) => each === MEANT.get(given));
  const similar = [other, longer, list?.split(', ')].find((each) => each !== undefined && each.length > 0);
  if (similar === undefined) return undefined;
  const meant = similar.map((each) => children.find((child) => child.aliases().includes(each))?.name() ?? each);
  const commands = [...new Set(meant)].map((each) => `'${name} ${each}'`);
  return `${problem} (did you mean ${commands.join(' or ')}?)`;
}

/**
 * Returns the message about an abbreviated option with the options that the user may mean; undefined if there are none. commander suggests
 * only options of about the same length.
 */
function abbreviated(message: string, options: readonly Option[]): string | undefined {
  const [problem, given] = /^unknown option '(--[^'=]+).*'/.exec(message) ?? [];
  if (given === undefined) return undefined;
  const meant = options.flatMap(({ long, hidden }) => (!hidden && long?.startsWith(given) ? [long] : []));
  return meant.length === 0 ? undefined : `${problem} (did you mean ${meant.join(' or ')}?)`;
}

/** Returns the message about an option that exactly one other command has, with that command; undefined for other messages. */
function ofOther(message: string, name: string, parent: Command | null | undefined): string | undefined {
  const [, problem, given] = /^(unknown option '(--[^'=]+)[^']*')/.exec(message) ?? [];
  const has = ({ options }: Command): boolean => options.some(({ long, hidden }) => long === given && !hidden);
  const [owner, ...others] = parent?.commands.filter(has) ?? [];
  // After `run`, the option is probably one of the command to run.
  if (owner === undefined || others.length > 0 || name.endsWith(' run')) return undefined;
  return `${problem} (did you mean '${fullName(owner)} ${given}'?)`;
}

/** Returns a hint if the option belongs after the name of a command of the group; empty otherwise. */
function placeHint(message: string, name: string, children: readonly Command[]): string {
  const [, option = ''] = /^unknown option '([^'=]*)/.exec(message) ?? [];
  const owner = children.find(({ options }) => options.some(({ short, long }) => option === short || option === long));
  return owner === undefined ? '' : `: give it after a command, as in '${name} ${owner.name()} ${option}'`;
}

/** Options with which docker run and kubectl run connect standard input or a terminal. */
const INTERACTIVE = /^(?:-[it]+|--interactive|--tty|--stdin)$/;

function runHint(message: string, name: string): string {
  const [, option] = /^unknown option '([^'=]*).*'$/.exec(message) ?? [];
  if (option === undefined || !name.endsWith(' run')) return '';
  return INTERACTIVE.test(option)
    ? ': standard input is not connected, so omit the option'
    : `: options of the command come after --, such as '${name} IMAGE -- sh -c COMMAND'`;
}

function shortened(message: string, name: string): string {
  const [, flags, value, rule] =
    /^option '(.*?)' (?:argument|value) '(.*)' (?:from env '.*' )?is invalid\. (.*?)\.?$/s.exec(message) ?? [];
  if (flags !== undefined) return `${longOf(flags)} ${value} is not valid: ${choicesAs(rule)}`;
  const [, given, argument, allowed] =
    /^command-argument value '(.*)' is invalid for argument '(.*?)'\. (.*?)\.?$/s.exec(message) ?? [];
  if (argument !== undefined) return `${given} is not a valid ${argument}: ${choicesAs(allowed)}`;
  const [, missing] = /^missing required argument '(.*)'$/.exec(message) ?? [];
  if (missing !== undefined) return `missing argument <${missing}>`;
  const [, valueless] = /^option '(.*)' argument missing$/.exec(message) ?? [];
  if (valueless !== undefined) return `${longOf(valueless)} needs a value: give '${valueless.replace(/^-\w, /, '')}'`;
  const [, excess] = /^too many arguments.* but got \d+: (.*)\.$/s.exec(message) ?? [];
  if (excess !== undefined) return `too many arguments: ${excess}${meantWorkload(excess, name)}`;
  return message.replace(/\s*\n\(Did you mean (.*)\)$/s, ' (did you mean $1)');
}

/** Returns a hint for a type and a name as two words, which kubectl also accepts; empty for other words. */
function meantWorkload(excess: string, name: string): string {
  const [, type = '', object] = /^([^,]+), ([^,\s/]+)$/.exec(excess) ?? [];
  const isMeant = object !== undefined && (isPodType(type) || workloadKind(type) !== undefined);
  return isMeant && name.endsWith(' why') ? ` (did you mean '${name} ${type}/${object}'?)` : '';
}

const longOf = (flags: string): string => /--[\w-]+/.exec(flags)?.[0] ?? flags;

/** `Allowed choices are a, b, c` becomes `give a, b or c`. */
function choicesAs(rule = ''): string {
  const [, list] = /^Allowed choices are (.*)$/.exec(rule) ?? [];
  return list === undefined ? rule : `give ${list.replace(/, ([^,]*)$/, ' or $1')}`;
}
