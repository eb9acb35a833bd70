/**
 * Refuses empty values of options and arguments. A shell passes an empty value for a variable that is not set, and a command that ignored
 * it would use another engine, namespace or file than the user means. A value that begins with `--` is refused, too, because it is
 * the next option, and the value is missing.
 */
import type { Argument, Command, Option } from 'commander';
import { auditFlags } from '../../engine/audit/audit-settings.ts';
import { authenticationFlags } from '../../engine/authentication/authentication-settings.ts';
import { nodeOptionFlags } from '../../engine/node-settings.ts';
import { API_FLAGS } from '../../engine/options/api-settings.ts';
import { ENCRYPTION_FLAG } from '../../engine/options/encryption-settings.ts';
import { UserError } from '../../platform/files.ts';
import { allCommands, fullName } from './help-format.ts';

/** The options of `lifepod up` whose empty value removes the recorded one. Their own rules refuse the values that they do not accept. */
export const MAY_BE_EMPTY: ReadonlySet<string> = new Set([
  ...API_FLAGS.map(([flag]) => flag),
  ...[...auditFlags({}), ...authenticationFlags({}), ...nodeOptionFlags({})].map(([flag]) => flag),
  ENCRYPTION_FLAG,
  '--container-runtime-endpoint',
]);

/** The argument that is passed on to a program, which may accept empty words. */
const PASSED_ON = 'command';

/** Must be called after all commands have been added. */
export function refuseEmptyValues(program: Command): void {
  for (const command of allCommands(program)) {
    for (const option of command.options) if (option.required || option.optional) refuseEmptyOption(option, command);
    for (const argument of command.registeredArguments) {
      if (argument.name() !== PASSED_ON) refuseEmptyArgument(argument, fullName(command));
    }
  }
}

/** A parser of values of any type. commander's own type for parsers is generic. */
type Parse = (value: string, previous: unknown) => unknown;

function refuseEmptyOption(option: Option, command: Command): void {
  const parse = option.parseArg as Parse | undefined;
  const { long, flags } = option;
  const form = flags.replace(/^-\w, /, '');
  // For an empty --data-dir, realDataDir() and givenDataDir() throw an error that names a usual data folder.
  const mayBeEmpty = long === '--data-dir' || MAY_BE_EMPTY.has(long ?? '');
  option.argParser<unknown>((value, previous) => {
    if (value === '' && !mayBeEmpty) throw new UserError(`${long} is empty: give '${form}', or omit the option`);
    if (value.startsWith('--'))
      throw new UserError(`${long} needs a value before ${value}: give '${form}'; see '${fullName(command)} --help'`);
    return parse === undefined ? value : parse(value, previous);
  });
}

function refuseEmptyArgument(argument: Argument, command: string): void {
  const parse = argument.parseArg as Parse | undefined;
  argument.argParser<unknown>((value, previous) => {
    if (value === '') throw new UserError(`the argument <${argument.name()}> is empty; see '${command} --help'`);
    if (parse !== undefined) return parse(value, previous);
    return argument.variadic ? [...((previous as string[] | undefined) ?? []), value] : value;
  });
}
