import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Argument, Option } from 'commander';
import { expect, test } from 'vitest';
import { UserError } from '../../platform/files.ts';
import { program } from '../main.ts';
import { MAY_BE_EMPTY } from './empty-values.ts';
import { allCommands, fullName } from './help-format.ts';

const emptyError = ({ parseArg }: Pick<Option | Argument, 'parseArg'>): unknown => {
  try {
    return parseArg?.('', undefined);
  } catch (error) {
    return error;
  }
};

const options = allCommands(program).flatMap((command) =>
  command.options
    .filter(({ required, optional }) => required || optional)
    .map((option) => [`${fullName(command)} ${option.long}`, option] as const),
);
const mayBeEmpty = ({ long }: Option): boolean => MAY_BE_EMPTY.has(long ?? '');

test.each(options.filter(([, option]) => !mayBeEmpty(option)))('%s refuses an empty value', (_, option) => {
  const error = emptyError(option);
  expect(error).toBeInstanceOf(UserError);
  expect((error as UserError).message).toMatch(new RegExp(`^${option.long} is empty: give `));
});

test.each(options)('%s refuses an option and -- in place of its value', (name, option) => {
  for (const value of ['--', '--port'])
    expect(() => option.parseArg?.(value, undefined as never)).toThrow(
      `${option.long} needs a value before ${value}: give '${option.flags.replace(/^-\w, /, '')}'; see '${name.replace(/ --[\w-]+$/, '')} --help'`,
    );
});

test('only options of lifepod up may be empty, and the one with the same meaning of secrets discard', () => {
  const names = options.filter(([, option]) => mayBeEmpty(option)).map(([name]) => name);
  for (const long of ['--tls-san', '--container-runtime-endpoint']) expect(names).toContain(`lifepod up ${long}`);
  expect(names.filter((name) => !name.startsWith('lifepod up --'))).toEqual([
    'lifepod secrets discard --encryption-provider-config',
  ]);
});

const positional = allCommands(program).flatMap((command) =>
  command.registeredArguments.map((each) => [`${fullName(command)} <${each.name()}>`, each] as const),
);

test.each(positional.filter(([name]) => name !== 'lifepod run <command>'))(
  '%s refuses an empty argument',
  (name, each) => {
    expect(emptyError(each)).toEqual(
      new UserError(`the argument <${each.name()}> is empty; see '${name.replace(/ <.*/, '')} --help'`),
    );
  },
);

test('several arguments are all passed to the command', () => {
  const parse = positional.find(([name]) => name === 'lifepod up <file>')?.[1].parseArg;
  expect(['a', 'b'].reduce<unknown>((files, each) => parse?.(each, files), undefined)).toEqual(['a', 'b']);
});

test('an empty value is reported in one sentence', async () => {
  const main = new URL('../main.ts', import.meta.url).pathname;
  const failed = await promisify(execFile)(process.execPath, [main, 'why', 'p', '-n', '']).catch((error) => error);
  const stderr = "lifepod: --namespace is empty: give '--namespace <name>', or omit the option\n";
  expect(failed).toMatchObject({ code: 1, stderr, stdout: '' });
});
