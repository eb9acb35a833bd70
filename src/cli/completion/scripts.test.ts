/** Runs the scripts in real shells: bash, and zsh and fish where they are installed. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findProgram, runCommandOk } from '../../platform/processes.ts';
import { SHELLS, type Shell } from './scripts.ts';

const REPOSITORY = join(import.meta.dirname, '../../..');
const ENV = { ...process.env, PATH: `${join(REPOSITORY, 'bin')}:${process.env['PATH']}` };

const QUERIES: Record<Shell, { load: string; ask(line: string): string }> = {
  bash: {
    // The command compopt of bash works only while a user completes a word.
    load: 'source <(lifepod completion bash); compopt() { echo "compopt $*"; }',
    ask: (line) => `
      COMP_LINE='${line}' COMP_POINT=${line.length}
      _lifepod
      printf '%s\\n' "\${COMPREPLY[@]}"`,
  },
  zsh: {
    // These functions of zsh work only in its line editor.
    load: `
      compdef() { registered=$*; }
      _files() { echo "files $*"; }
      _describe() { print -l -- "\${(@)\${(P)3}%%:*}"; }
      source <(lifepod completion zsh)
      [[ $registered == '_lifepod lifepod' ]] || echo not registered`,
    ask: (line) => `
      words=(${line.endsWith(' ') ? `${line} ''` : line}) CURRENT=$#words
      _lifepod`,
  },
  fish: {
    load: 'lifepod completion fish | source',
    ask: (line) => `complete -C '${line}' | string replace -r '\\t.*' ''; true`,
  },
};

const installed = SHELLS.filter((shell) => findProgram(shell) !== undefined);

async function complete(shell: Shell, ...lines: string[]): Promise<string[][]> {
  const { load, ask } = QUERIES[shell];
  const script = [load, ...lines.map((line) => `${ask(line)}\necho next`)].join('\n');
  const output = await runCommandOk(shell, [...(shell === 'zsh' ? ['-f'] : []), '-c', script], { env: ENV });
  const answers = output.split('next\n').slice(0, -1);
  return answers.map((answer) =>
    answer
      .split('\n')
      .filter((text) => text !== '')
      .sort(),
  );
}

test('bash is among the shells of this machine', () => {
  expect(installed).toContain('bash');
});

test.each(installed)('the script for %s offers commands, options and values', async (shell) => {
  expect(await complete(shell, 'lifepod lo', 'lifepod down --n', 'lifepod up --log-level ')).toEqual([
    ['logs'],
    ['--now'],
    ['debug', 'error', 'info', 'warn'],
  ]);
});

test('bash replaces only the part of a word after the last separator, and completes files and folders itself', async () => {
  const lines = ['lifepod up --log-level=w', 'lifepod image load ', 'lifepod up --data-dir '];
  expect(await complete('bash', ...lines)).toEqual([['warn'], ['compopt -o default'], ['compopt -o dirnames']]);
});
