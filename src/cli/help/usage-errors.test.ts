import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { Command, Option } from 'commander';
import { expect, test } from 'vitest';
import { usageError } from './usage-errors.ts';

test.each([
  [
    "error: unknown option '--detatch'\n(Did you mean --detach?)",
    "unknown option '--detatch' (did you mean --detach?)",
  ],
  ["error: unknown option '--wurst'", "unknown option '--wurst'"],
  [
    "error: unknown option '--rm-x'\n(Did you mean one of --rm, --rx?)",
    "unknown option '--rm-x' (did you mean one of --rm, --rx?)",
  ],
  ["error: missing required argument 'pod'", 'missing argument <pod>'],
  ["error: option '-n, --namespace <name>' argument missing", "--namespace needs a value: give '--namespace <name>'"],
  [
    "error: option '--log-level <level>' argument 'loud' is invalid. Allowed choices are debug, info, warn, error.",
    '--log-level loud is not valid: give debug, info, warn or error',
  ],
  [
    "error: option '-o, --output <format>' argument 'x' is invalid. Allowed choices are json.",
    '--output x is not valid: give json',
  ],
  ["error: option '--port <number>' argument 'x' is invalid. give a number.", '--port x is not valid: give a number'],
  [
    "error: command-argument value 'tcsh' is invalid for argument 'shell'. Allowed choices are bash, zsh, fish.",
    'tcsh is not a valid shell: give bash, zsh or fish',
  ],
  ["error: too many arguments for 'status'. Expected 0 arguments but got 2: a, b.", 'too many arguments: a, b'],
])('%j becomes one sentence', (message, sentence) => {
  expect(usageError(`${message}\n`, 'lifepod up')).toBe(`${sentence}; see 'lifepod up --help'`);
});

const group = [
  new Command('load').addOption(new Option('--data-dir <folder>')),
  new Command('list').alias('ls').addOption(new Option('-o, --output <format>')),
];
test.each([
  [
    "unknown command 'lst'\n(Did you mean one of list, ls?)",
    "unknown command 'lst' (did you mean 'lifepod image list'?)",
  ],
  [
    "unknown command 'lod'\n(Did you mean one of load, ls?)",
    "unknown command 'lod' (did you mean 'lifepod image load' or 'lifepod image list'?)",
  ],
  ["unknown command 'lis'\n(Did you mean ls?)", "unknown command 'lis' (did you mean 'lifepod image list'?)"],
  ["unknown command 'lo'", "unknown command 'lo' (did you mean 'lifepod image load'?)"],
  ["unknown command 'push'", "unknown command 'push'"],
  [
    "unknown option '--data-dir'",
    "unknown option '--data-dir': give it after a command, as in 'lifepod image load --data-dir'",
  ],
  ["unknown option '-o'", "unknown option '-o': give it after a command, as in 'lifepod image list -o'"],
  ["unknown option '--wurst'", "unknown option '--wurst'"],
])('%j of a group of commands becomes one sentence with whole commands', (message, sentence) => {
  expect(usageError(`error: ${message}\n`, 'lifepod image', { commands: group, options: [] })).toBe(
    `${sentence}; see 'lifepod image --help'`,
  );
});

test('the command that stops or starts the engine is suggested for the words that other programs use', () => {
  const commands = ['up', 'down', 'skip'].map((name) => new Command(name));
  const said = (text: string): string => usageError(text, 'lifepod', { commands, options: [] });
  expect(said("error: unknown command 'stop'\n(Did you mean skip?)")).toContain("(did you mean 'lifepod down'?)");
  expect(said("error: unknown command 'start'")).toContain("(did you mean 'lifepod up'?)");
});

test('the beginning of an option is not taken for a misspelled one', () => {
  const command = new Command('logs').option('--all-containers').option('--tail <lines>').option('--since <duration>');
  command.option('--since-time <time>').addOption(new Option('--all-secret').hideHelp());
  const said = (message: string) => usageError(`error: ${message}\n`, 'lifepod logs', command);
  expect(said("unknown option '--al'\n(Did you mean --tail?)")).toBe(
    "unknown option '--al' (did you mean --all-containers?); see 'lifepod logs --help'",
  );
  expect(said("unknown option '--si=3'")).toContain("'--si=3' (did you mean --since or --since-time?)");
  expect(said("unknown option '--tial'\n(Did you mean --tail?)")).toContain("'--tial' (did you mean --tail?)");
});

test('a type and a name that are two words are joined in the advice for why', () => {
  const said = (name: string, words: string) =>
    usageError(`error: too many arguments for 'x'. Expected 1 argument but got 2: ${words}.\n`, name);
  expect(said('lifepod why', 'job, fin')).toBe(
    "too many arguments: job, fin (did you mean 'lifepod why job/fin'?); see 'lifepod why --help'",
  );
  expect(said('lifepod why', 'deployment.apps, web')).toContain("(did you mean 'lifepod why deployment.apps/web'?)");
  expect(said('lifepod why', 'pod, web')).toContain("(did you mean 'lifepod why pod/web'?)");
  expect(said('lifepod why', 'web, db')).toBe("too many arguments: web, db; see 'lifepod why --help'");
  expect(said('lifepod why', 'job/a, job/b')).toBe("too many arguments: job/a, job/b; see 'lifepod why --help'");
  expect(said('lifepod timeline', 'a, b')).toBe("too many arguments: a, b; see 'lifepod timeline --help'");
});

test.each([
  ['-it', 'lifepod run', "unknown option '-it': standard input is not connected, so omit the option"],
  ['--stdin=true', 'lifepod run', "unknown option '--stdin=true': standard input is not connected, so omit the option"],
  [
    '-c',
    'kubectl lifepod run',
    "unknown option '-c': options of the command come after --, such as 'kubectl lifepod run IMAGE -- sh -c COMMAND'",
  ],
  ['-it', 'lifepod up', "unknown option '-it'"],
])('the unknown option %s of %s has a hint about run', (option, name, sentence) => {
  expect(usageError(`error: unknown option '${option}'\n`, name)).toBe(`${sentence}; see '${name} --help'`);
});

test('a command of kubectl is suggested with the same arguments, unless lifepod has it or it follows a group of commands', () => {
  const error = (given: string, name = 'lifepod', children = group): string =>
    usageError(`error: unknown command '${given}'\n`, name, { commands: children, options: [] }, [
      given,
      'pods',
      '-l',
      'a in (b)',
    ]);
  expect(error('get')).toBe(
    "unknown command 'get' (did you mean 'kubectl get pods -l 'a in (b)''?); see 'lifepod --help'",
  );
  expect(error('get', 'kubectl lifepod')).toContain("(did you mean 'kubectl get pods ");
  expect(error('get', 'lifepod image')).toBe("unknown command 'get'; see 'lifepod image --help'");
  expect(error('got')).toBe("unknown command 'got'; see 'lifepod --help'");
});

const lifepod = (...args: string[]) => {
  const main = new URL('../main.ts', import.meta.url).pathname;
  return promisify(execFile)(process.execPath, ['--no-wasm-tier-up', main, ...args]).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({ code, stdout, stderr }),
  );
};

test('an error in the arguments is one line, and the exit code is 1', async () => {
  const stderr = "lifepod: unknown option '--detatch' (did you mean --detach?); see 'lifepod up --help'\n";
  expect(await lifepod('up', '--detatch')).toEqual({ code: 1, stdout: '', stderr });
});

test('lifepod --version and version print the same line', async () => {
  const [option, command] = await Promise.all([lifepod('--version'), lifepod('version')]);
  expect(option.stdout).toMatch(/^lifepod \d+\.\d+\.\d+ .*\n$/);
  expect(command).toEqual(option);
});

test.each([
  ['--uninstall-service', " (did you mean 'lifepod down --uninstall-service'?)"],
  ['--tail=4', " (did you mean 'lifepod logs --tail'?)"],
  ['--namespace', ''],
  ['--hidden', ''],
  ['--wurst', ''],
])('the unknown option %s of one other command is explained', (given, hint) => {
  const program = new Command('lifepod');
  const up = program.command('up');
  program.command('down').option('--uninstall-service').option('--namespace <name>');
  program
    .command('logs')
    .option('--tail <lines>')
    .option('--namespace <name>')
    .addOption(new Option('--hidden').hideHelp());
  expect(usageError(`error: unknown option '${given}'`, 'lifepod up', up)).toBe(
    `unknown option '${given}'${hint}; see 'lifepod up --help'`,
  );
});
