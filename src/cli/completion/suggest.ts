/**
 * Decides from the definitions of the commands what completes the last word of a command line. Pure.
 *
 * The definitions contain the commands, the options and the values that have fixed choices. The placeholder of any other argument or
 * value, such as `<pod>` or `<file>`, says what completes it.
 */
import type { Argument, Command, Option } from 'commander';

export interface Word {
  text: string;
  description?: string;
}

/** Names that only the API server or the kubeconfig knows. */
export type NameKind =
  | 'pods'
  /** Pods that exist, and deleted Pods that have a record. */
  | 'lives'
  | 'deferring-pods'
  /** Workloads of the type that `before` names. */
  | 'workloads'
  | 'namespaces'
  | 'containers'
  | 'entries'
  | 'images'
  | 'contexts';

export type Suggestion =
  | { kind: 'words'; words: Word[] }
  | { kind: 'files' }
  | { kind: 'folders' }
  | {
      kind: 'names';
      names: NameKind;
      /** The beginning of the word that is not part of the name, such as `pod/` or `--namespace=`. */
      before: string;
      typed: string;
      /** The values of the options before the word, by the long name of the option, such as `--namespace`. */
      options: ReadonlyMap<string, string>;
      operands: readonly string[];
    };

const NOTHING: Suggestion = { kind: 'words', words: [] };

/** What completes a value, by its placeholder, such as `file` in `<file>`. */
const BY_PLACEHOLDER: Readonly<Record<string, 'files' | 'folders' | NameKind>> = {
  file: 'files',
  folder: 'folders',
  pod: 'pods',
  entry: 'entries',
  container: 'containers',
  image: 'images',
};

/** What completes the value of an option whose placeholder is `<name>`. */
const BY_OPTION: Readonly<Record<string, NameKind>> = {
  '--namespace': 'namespaces',
  '--container': 'containers',
  '--context': 'contexts',
};

/** The commands whose argument may also be a deleted Pod. */
const LIFE_COMMANDS: readonly string[] = ['timeline', 'why'];

/** The words before the last one, as commander would read them. */
interface Read {
  command: Command;
  options: Map<string, string>;
  operands: string[];
  pending?: Option;
  isAfterDashes: boolean;
}

/** Returns what completes the last of `words`, the words after the name of the program. The last word may be empty. */
export function suggest(program: Command, words: readonly string[]): Suggestion {
  const typed = words.at(-1) ?? '';
  const read = readWords(program, words.slice(0, -1));
  const { command, operands, pending, isAfterDashes } = read;
  if (pending !== undefined) return suggestValue(pending, read, '', typed);
  const [, flag = '', value = ''] = /^(--[^=]+|-\w)=(.*)$/s.exec(typed) ?? [];
  if (!isAfterDashes && flag !== '') {
    const option = optionOf(command, flag);
    return option === undefined ? NOTHING : suggestValue(option, read, `${flag}=`, value);
  }
  if (!isAfterDashes && typed.startsWith('-')) return wordsOf(typed, visibleOptions(command).map(wordOfOption));
  if (hasCommands(command) && operands.length === 0) return wordsOf(typed, visibleCommands(command));
  const { registeredArguments } = command;
  const argument = registeredArguments[operands.length] ?? registeredArguments.at(-1);
  if (argument === undefined || (operands.length >= registeredArguments.length && !argument.variadic)) return NOTHING;
  return suggestArgument(argument, read, typed);
}

function readWords(program: Command, words: readonly string[]): Read {
  const read: Read = { command: program, options: new Map(), operands: [], isAfterDashes: false };
  for (const word of words) {
    const { command, pending } = read;
    if (pending !== undefined && !(pending.optional && word.startsWith('-'))) {
      read.options.set(pending.long ?? '', word);
      read.pending = undefined;
    } else if (read.isAfterDashes) read.operands.push(word);
    else if (word === '--') read.isAfterDashes = true;
    else if (word.startsWith('-') && word !== '-') readOption(read, word);
    else {
      const next = read.operands.length === 0 ? commandOf(command, word) : undefined;
      // `lifepod help up` shows the help of the command: the arguments of help are commands.
      if (next !== undefined) read.command = next;
      else if (!isHelpCommand(command, word)) read.operands.push(word);
    }
  }
  return read;
}

function readOption(read: Read, word: string): void {
  read.pending = undefined;
  const [, flag = word, value] = /^(--[^=]+|-\w)=(.*)$/s.exec(word) ?? [];
  const option = optionOf(read.command, flag.startsWith('--') ? flag : flag.slice(0, 2));
  if (option === undefined || !(option.required || option.optional)) return;
  const inline = value ?? (flag.startsWith('--') || flag.length === 2 ? undefined : flag.slice(2));
  if (inline === undefined) read.pending = option;
  else read.options.set(option.long ?? '', inline);
}

const optionOf = ({ options }: Command, flag: string): Option | undefined =>
  options.find(({ long, short }) => long === flag || short === flag);

const commandOf = ({ commands }: Command, word: string): Command | undefined =>
  commands.find((command) => command.name() === word || command.aliases().includes(word));

const hasCommands = ({ commands }: Command): boolean => commands.length > 0;

const isHelpCommand = (command: Command, word: string): boolean => hasCommands(command) && word === 'help';

const visibleCommands = (command: Command): Word[] =>
  command
    .createHelp()
    .visibleCommands(command)
    .map((each) => ({ text: each.name(), description: each.summary() || each.description() }));

const visibleOptions = (command: Command): Option[] => command.createHelp().visibleOptions(command);

const wordOfOption = ({ long, short, description }: Option): Word => ({ text: long ?? short ?? '', description });

const wordsOf = (typed: string, words: readonly Word[]): Suggestion => ({
  kind: 'words',
  words: words.filter(({ text }) => text.startsWith(typed)),
});

/** Returns the placeholder without brackets and dots; '' if the option has no value. */
const placeholderOf = ({ flags }: Option): string => (/[<[](.*?)[>\]]$/.exec(flags)?.[1] ?? '').replace(/,?\.{3}$/, '');

function suggestValue(option: Option, read: Read, before: string, typed: string): Suggestion {
  const placeholder = placeholderOf(option);
  const choices = option.argChoices ?? (placeholder.includes('|') ? placeholder.split('|') : undefined);
  if (choices !== undefined) return choose(choices, before, typed);
  return complete(BY_OPTION[option.long ?? ''] ?? BY_PLACEHOLDER[placeholder], read, before, typed);
}

function suggestArgument(argument: Argument, read: Read, typed: string): Suggestion {
  if (argument.argChoices !== undefined) return choose(argument.argChoices, '', typed);
  const [, before = '', name = typed] = /^((?:pods?|po)\/)(.*)$/.exec(typed) ?? [];
  const kind = BY_PLACEHOLDER[argument.name()];
  const command = read.command.name();
  const [, type = '', workload = ''] = /^([A-Za-z.]+\/)(.*)$/s.exec(typed) ?? [];
  if (command === 'why' && type !== '' && before === '') return complete('workloads', read, type, workload);
  const ofPods = LIFE_COMMANDS.includes(command) ? 'lives' : 'pods';
  const deferring = read.command.registeredArguments.some((each) => each.name() === 'entry');
  if (kind === 'pods' || before !== '') return complete(deferring ? 'deferring-pods' : ofPods, read, before, name);
  if (argument.name() === 'type') return choose(['pod'], '', typed);
  // In `describe pod NAME`, the placeholder is only `name`.
  if (argument.name() === 'name') return complete('pods', read, '', typed);
  return complete(kind, read, '', typed);
}

const choose = (choices: readonly string[], before: string, typed: string): Suggestion => ({
  kind: 'words',
  words: choices.filter((text) => text.startsWith(typed)).map((text) => ({ text: before + text })),
});

function complete(
  kind: 'files' | 'folders' | NameKind | undefined,
  { options, operands }: Read,
  before: string,
  typed: string,
): Suggestion {
  if (kind === undefined) return NOTHING;
  if (kind === 'files' || kind === 'folders') return { kind };
  return { kind: 'names', names: kind, before, typed, options, operands };
}
