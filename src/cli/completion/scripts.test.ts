/** Runs the scripts in real shells: bash, and zsh and fish where they are installed. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findProgram, runCommandOk } from '../../platform/processes.ts';
import { SHELLS, type Shell } from './scripts.ts';

const REPOSITORY = join(import.meta.dirname, '../../..');
const ENV = { ...process.env, PATH: `${join(REPOSITORY, 'bin')}:${process.env['PATH']}` };

/** Returns a command of the shell that prints the words which complete the line, one per line. */
const QUERIES: Record<Shell, (line: string) => string> = {
  // Bash separates words at = and :, and calls the function with its variables about the line.
  bash: (line) => `
    source <(lifepod completion bash)
    compopt() { echo "compopt $*"; }
    COMP_LINE='${line}' COMP_POINT=${line.length}
    _lifepod
    printf '%s\\n' "\${COMPREPLY[@]}"`,
  // These functions of zsh work only in its line editor.
  zsh: (line) => `
    compdef() { registered=$*; }
    _files() { echo "files $*"; }
    _describe() { print -l -- "\${(@)\${(P)3}%%:*}"; }
    source <(lifepod completion zsh)
    [[ $registered == '_lifepod lifepod' ]] || echo not registered
    words=(${line.endsWith(' ') ? `${line} ''` : line}) CURRENT=$#words
    _lifepod`,
  fish: (line) => `
    lifepod completion fish | source
    complete -C '${line}' | string replace -r '\\t.*' ''; true`,
};

const installed = SHELLS.filter((shell) => findProgram(shell) !== undefined);

const complete = async (shell: Shell, line: string): Promise<string[]> => {
  const options = shell === 'zsh' ? ['-f'] : [];
  const output = await runCommandOk(shell, [...options, '-c', QUERIES[shell](line)], { env: ENV });
  return output.split('\n').filter((text) => text !== '');
};

test('bash is among the shells of this machine', () => {
  expect(installed).toContain('bash');
});

test.each(installed)('the script for %s offers commands, options and values', async (shell) => {
  expect(await complete(shell, 'lifepod lo')).toEqual(['logs']);
  expect(await complete(shell, 'lifepod down --n')).toEqual(['--now']);
  expect((await complete(shell, 'lifepod up --log-level ')).sort()).toEqual(['debug', 'error', 'info', 'warn']);
});

test('the script for bash replaces only the part of a word after the last separator', async () => {
  expect(await complete('bash', 'lifepod up --log-level=w')).toEqual(['warn']);
});

test('the script for bash leaves files and folders to bash', async () => {
  expect(await complete('bash', 'lifepod image load ')).toEqual(['compopt -o default']);
  expect(await complete('bash', 'lifepod up --data-dir ')).toEqual(['compopt -o dirnames']);
});
